--- Checks and normalizes prompt definitions, and converts them for clients.

local common = require('mcp-tools.registry.definition.common')
local value = require('mcp-tools.schema.value')

local M = {}

---@class mcp-tools.PromptDefinition a normalized prompt
---@field key string its name
---@field name string
---@field title string?
---@field description string
---@field args mcp-tools.PromptArgument[] ordered as clients ask for them
---@field timeout number? ms
---@field callers table<string, table>?
---@field style 'execute'|'run'
---@field handler function
---@field lint string[]

---@class mcp-tools.PromptArgument
---@field name string
---@field title string?
---@field description string?
---@field required boolean
---@field complete? fun(ctx: mcp-tools.Ctx, prefix: string, arguments: table<string, string>)

local RULES = common.rules({
  name = common.name,
  title = common.text,
  description = common.filled_text,
  timeout = common.milliseconds,
}, { table = 'args callers', ['function'] = 'get run' })

local ARG_RULES = common.rules(
  { name = common.filled_text, title = common.text, description = common.text },
  { boolean = 'required', ['function'] = 'complete' }
)

---@param name any
---@param arg any
---@param field string
---@param out mcp-tools.Findings
---@return mcp-tools.PromptArgument?
local function take_arg(name, arg, field, out)
  if type(name) ~= 'string' or not name:find('%S') then
    common.note(out.faults, field .. '.name', 'must be a non-empty string')
    return nil
  elseif type(arg) ~= 'table' then
    common.note(out.faults, field, 'must be a table such as { description = "…" }')
    return nil
  end
  common.check_fields(arg, ARG_RULES, {}, out, field)
  return {
    name = name,
    title = arg.title,
    description = arg.description,
    required = arg.required == true,
    complete = arg.complete,
  }
end

--- Returns the arguments in order: as listed; for a map, required ones first, then by name.
---@param args table
---@param out mcp-tools.Findings
---@return mcp-tools.PromptArgument[]
local function take_args(args, out)
  local list, seen = {}, {}
  if args[1] ~= nil then
    for i, arg in ipairs(args) do
      local name = type(arg) == 'table' and arg.name or nil
      local field = ('args[%d]'):format(i)
      list[#list + 1] = take_arg(name, arg, field, out)
      if name ~= nil and seen[name] then
        common.note(out.faults, field .. '.name', 'is a duplicate')
      end
      seen[name or false] = true
    end
    return list
  end
  for _, name in ipairs(value.names(args)) do
    list[#list + 1] = take_arg(name, args[name], 'args.' .. tostring(name), out)
  end
  table.sort(list, function(a, b)
    if a.required ~= b.required then
      return a.required
    end
    return a.name < b.name
  end)
  return list
end

--- Checks and normalizes a definition.
---@param def mcp-tools.Prompt
---@return mcp-tools.PromptDefinition?
---@return string? err all faults, one per line: `prompt 'x': args.topic.required: …`
function M.normalize(def)
  local given, out, err = common.begin('prompt', def, RULES, { 'name', 'description' }, 'get')
  if not given then
    return nil, err
  end
  local args = take_args(type(given.args) == 'table' and given.args or {}, out)
  common.check_name(given.name, '^[%w_-]+$', 'A-Z, a-z, 0-9, - and _; clients make commands of names', out)
  local made = { key = given.name, args = args, handler = given.run or given.get }
  return common.finish('prompt', given.name, given, RULES, out, made)
end

--- Converts a definition to an MCP `Prompt`.
---@param def mcp-tools.PromptDefinition
---@return table prompt
function M.published(def)
  local icons, meta = common.extras(def)
  local arguments = {}
  for i, arg in ipairs(def.args) do
    arguments[i] = {
      name = arg.name,
      title = arg.title,
      description = arg.description,
      required = arg.required or nil,
    }
  end
  return {
    name = def.name,
    title = def.title,
    description = def.description,
    arguments = #arguments > 0 and arguments or nil,
    icons = icons,
    _meta = meta,
  }
end

return M
