--- The call kind `tool`: finds a tool, and adapts and checks its arguments.

local results = require('mcp-tools.calls.result')
local errors = require('mcp-tools.errors')
local keywords = require('mcp-tools.schema.keywords')
local schemas = require('mcp-tools.registry.definition.schemas')
local tool = require('mcp-tools.registry.definition.tool')
local suggest = require('mcp-tools.util.suggest')
local tool_search = require('mcp-tools.scope.tool_search')
local utf8 = require('mcp-tools.util.utf8')
local value = require('mcp-tools.schema.value')

-- Arguments in another form ------------------------------------------------------------------------------------------

--- Names that models know from other tools → our names; the first one that a schema has is meant.
---@type table<string, string[]>
local NAMES = {}
for theirs, ours in pairs({
  ['file filename file_path filepath relative_path absolute_path target_file uri'] = 'path paths',
  ['files file_paths path'] = 'paths globs',
  ['dir directory folder workdir working_directory'] = 'cwd path',
  ['name name_path symbol_name identifier'] = 'symbol query',
  ['pattern regexp'] = 'query globs symbol',
  ['query'] = 'symbol',
  ['search search_text words keywords'] = 'query old_text',
  ['glob include includes file_glob file_pattern'] = 'globs',
  ['content contents file_text'] = 'text',
  ['old_string old_str find old'] = 'old_text query',
  ['new_string new_str replace new'] = 'new_text replacement text',
  ['new_text repl'] = 'replacement text definition',
  ['changes'] = 'edits',
  ['code'] = 'text definition',
  ['include_body'] = 'body',
  ['cmd command_line script'] = 'command',
  ['offset from_line first_line'] = 'start_line',
  ['to_line last_line'] = 'end_line',
  ['lnum'] = 'line',
  ['col character'] = 'column',
  ['max_results head_limit count'] = 'limit',
  ['skip'] = 'offset',
  ['context_lines'] = 'context',
  ['destination dest to'] = 'new_path new_name',
  ['timeout wait_ms'] = 'timeout_ms',
  ['expression'] = 'expressions',
  ['case_insensitive'] = 'ignore_case',
  ['question'] = 'questions',
  ['options'] = 'choices',
  ['multiSelect'] = 'multiselect',
  ['where'] = 'position',
}) do
  for name in theirs:gmatch('%S+') do
    NAMES[name] = vim.split(ours, ' ')
  end
end

--- Renames arguments that the schema does not have.
---@param properties table<string, table>
---@param args table changed in place
local function rename(properties, args)
  local foreign = {}
  for name in pairs(args) do
    if properties[name] == nil and NAMES[name] then
      table.insert(foreign, name)
    end
  end
  table.sort(foreign)
  for _, name in ipairs(foreign) do
    for _, ours in ipairs(NAMES[name]) do
      if properties[ours] ~= nil and args[ours] == nil then
        args[ours], args[name] = args[name], nil
        if name == 'pattern' and ours == 'query' and properties.regex and args.regex == nil then
          args.regex = true
        end
        break
      end
    end
  end
end

--- Converts one value.
---@param schema table
---@param v any
---@return any
local function converted(schema, v)
  local types = keywords.types_of(schema)
  local is_list = types and vim.list_contains(types, 'array')
  if is_list and type(v) == 'table' and type(schema.items) == 'table' and schema.items.properties then
    return value.is_array(v) and v or { v }
  elseif type(v) ~= 'string' or not types or vim.list_contains(types, 'string') then
    return v
  end
  local ok, decoded = pcall(vim.json.decode, v)
  if ok and decoded ~= vim.NIL and value.is_one_of(types, decoded) then
    return decoded
  end
  local items = is_list and schema.items or nil
  if type(items) == 'table' and vim.list_contains(keywords.types_of(items) or {}, 'string') then
    return { v }
  end
  return v
end

--- Converts arguments to the form that a schema of objects, arrays and plain values describes.
---@param schema table of an object with `properties`
---@param args table changed in place
local function adapt(schema, args)
  local properties = schema.properties
  if type(properties) ~= 'table' or value.is_array(args) and next(args) ~= nil then
    return
  end
  rename(properties, args)
  for name, property in pairs(properties) do
    if args[name] ~= nil then
      local v = converted(property, args[name])
      args[name] = v
      local items = type(v) == 'table' and property.items
      if type(items) == 'table' and items.properties and value.is_array(v) then
        for _, item in ipairs(v) do
          if type(item) == 'table' then
            adapt(items, item)
          end
        end
      elseif type(v) == 'table' and property.properties then
        adapt(property, v)
      end
    end
  end
end

-- Arguments -----------------------------------------------------------------------------------------------------------

--- Maximum number of unknown arguments that one error names, and bytes of a name.
local MAX_UNKNOWN, MAX_ARGUMENT = 10, 80

--- Limits the time that a client's arguments can block the main thread to about 15 ms.
local MAX_STEPS = 300000
local STRICT, LENIENT = { strict = true, steps = MAX_STEPS }, {}

--- Returns the error for invalid arguments.
---@param name string of the definition
---@param faults mcp-tools.Fault[]
---@param hint string? appended to the message
---@return mcp-tools.Error
local function invalid_arguments(name, faults, hint)
  local lines = {}
  for i, fault in ipairs(faults) do
    lines[i] = ('%s: %s'):format(fault.field, fault.message)
  end
  local text = ('Invalid arguments for %s: %s%s'):format(name, table.concat(lines, '; '), hint or '')
  return errors.new('validation_error', text, faults)
end

--- Returns the unknown arguments of a tool that accepts them, because some clients add their own.
---@param definition mcp-tools.Definition
---@param args table
---@return string[] names at most MAX_UNKNOWN, sorted
local function unknown_names(definition, args)
  local names = {}
  local is_open = definition.args and definition.input_schema.additionalProperties ~= false
  for name in pairs(is_open and args or {}) do
    if definition.args[name] == nil then
      names[#names + 1] = utf8.cut(tostring(name), MAX_ARGUMENT)
      if #names == MAX_UNKNOWN then
        break
      end
    end
  end
  table.sort(names)
  return names
end

--- Checks the arguments of a tool and fills in defaults.
---@param definition mcp-tools.Definition
---@param args any changed in place; nil and null mean no arguments
---@param exact boolean? empty tables are marked as arrays or objects, as those that the bridge sends are
---@return table? value
---@return mcp-tools.Error? err
local function check(definition, args, exact)
  if args == nil or args == vim.NIL then
    args = vim.empty_dict()
  end
  local found = type(args) ~= 'table' and type(args) or not definition.check and #args > 0 and 'a list'
  if found then
    local fault = { field = '(root)', message = 'must be an object, got ' .. found }
    return nil, invalid_arguments(definition.name, { fault })
  elseif not definition.check then
    return exact and args or schemas.shaped(args, definition.input_schema)
  end
  local opts = exact and STRICT or LENIENT
  if definition.adapts then
    adapt(definition.input_schema, args)
  end
  if definition.prepare then
    local prepared, err = definition.prepare(args)
    if not prepared then
      return nil, err
    end
    args = prepared
  end
  local too_large
  args, too_large = definition.check:fill(args, opts)
  if too_large then
    return nil, invalid_arguments(definition.name, { too_large })
  end
  local ok, faults = definition.check:check(args, opts)
  if not ok then
    -- A missing argument was often sent under another name.
    local unknown = unknown_names(definition, args)
    local hint = #unknown > 0 and (' (it has no argument %s)'):format(table.concat(unknown, ', ')) or nil
    return nil, invalid_arguments(definition.name, faults, hint)
  end
  return args
end

-- Names ---------------------------------------------------------------------------------------------------------------

--- Maximum bytes of a requested name in a message.
local MAX_NAME = 200

--- Returns the message for an unknown tool, with a similar name from the client's scope if there is one.
---@param registry mcp-tools.Registry
---@param name any
---@param view mcp-tools.View?
---@return string
local function unknown_tool_message(registry, name, view)
  local text = ('Unknown tool: %s'):format(utf8.cut(tostring(name), MAX_NAME))
  if type(name) == 'string' then
    local prefix, names = registry.prefix(), {}
    prefix = vim.startswith(name, prefix) and prefix or '' -- suggests the same form, published or bare
    for each, definition in pairs(registry.entries.tools) do
      names[#names + 1] = (not view or view:allows(definition)) and each or nil
    end
    local near, edits = suggest(name:sub(#prefix + 1), names)
    if near and edits <= math.max(1, math.floor(#near / 3)) then -- a model would call even an unrelated tool
      text = ('%s; did you mean %s?'):format(text, tool.published_name(registry.entries.tools[near], prefix))
    end
    local why = registry.absence(name)
    text = why and ('%s: %s'):format(text, why) or text
  end
  return text
end

--- Finds a tool by its name, or by a name of guill/mcp-tools.nvim that it still accepts.
---@param registry mcp-tools.Registry
---@param name string
---@param args any
---@return mcp-tools.Definition? definition
---@return table? mapped the arguments, if it was found by the other name
local function find_by_name(registry, name, args)
  local definition = registry:find_tool(name)
  if definition then
    return definition
  end
  local alias
  definition, alias = registry:find_alias(name)
  if not definition then
    return nil
  end
  args = type(args) == 'table' and args or {}
  args = type(alias) == 'function' and alias(args) or vim.tbl_extend('force', args, alias)
  return definition, next(args) and args or vim.empty_dict()
end

--- Finds a tool of tool search. For `tools_call` that is the tool which it calls, so that there is one call, with that
--- tool's annotations, approval, timeout and name in the audit log.
---@param registry mcp-tools.Registry
---@param name any
---@param args any
---@param view mcp-tools.View
---@return mcp-tools.Definition? definition
---@return mcp-tools.Error? err
---@return table? args of the called tool
local function find_for_search(registry, name, args, view)
  local bare = type(name) == 'string' and registry:bare(name) or nil
  if bare ~= tool_search.CALL then
    return tool_search.bound(registry, view, bare)
  end
  local given, err = check(tool_search.get(bare), args, true)
  if not given then
    return nil, err
  end
  local inner = given.arguments or vim.empty_dict()
  local definition, mapped = find_by_name(registry, given.name, inner)
  if not definition or not view:allows(definition) then
    -- Not `unknown_tool`, which becomes a protocol error; models see only results.
    return nil, errors.new('not_found', 'name: ' .. unknown_tool_message(registry, given.name, view))
  end
  return definition, nil, mapped or inner
end

---@class mcp-tools.ToolKind: mcp-tools.CallKind
---@field adapt fun(schema: table, args: table)
---@field invalid_arguments fun(name: string, faults: mcp-tools.Fault[], hint: string?): mcp-tools.Error
return {
  find = function(registry, name, args, view)
    if view and view.catalogue == 'search' then
      local found, err, inner = find_for_search(registry, name, args, view)
      if found or err then
        return found, err, inner
      end
    end
    local definition, mapped
    if view and view.agent then
      definition = view:agent_tool(name)
    elseif type(name) == 'string' then
      definition, mapped = find_by_name(registry, name, args)
    end
    if not definition or view and not view:allows(definition) then
      return nil, errors.new('unknown_tool', unknown_tool_message(registry, name, view))
    end
    return definition, nil, mapped
  end,
  adapt = adapt,
  arguments = check,
  invalid_arguments = invalid_arguments,
  payload = results.payload,
  limit = 'max_result',
}
