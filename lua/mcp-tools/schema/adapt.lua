--- Converts arguments that models write in another form than the schema has: names that they know from other tools,
--- JSON text for an array or object, one string for a list of strings, a number or boolean as text.

local keywords = require('mcp-tools.schema.keywords')
local value = require('mcp-tools.schema.value')

local M = {}

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
function M.adapt(schema, args)
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
            M.adapt(items, item)
          end
        end
      elseif type(v) == 'table' and property.properties then
        M.adapt(property, v)
      end
    end
  end
end

return M
