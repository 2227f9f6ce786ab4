--- A tool called by hand: its arguments are asked for, those of the last time stand there already.

local form = require('mcp-tools.ui.form')
local json = require('mcp-tools.util.json')
local json_schema = require('mcp-tools.schema')

---@type table<string, table> tool → arguments
local last = {}

--- Can a form ask for it, field by field?
---@param schema table of an argument
---@return boolean
local function is_plain(schema)
  local of = type(schema) == 'table' and schema.type or nil
  if of == 'array' then
    return type(schema.items) == 'table' and schema.items.type == 'string'
  end
  return of == 'string' or of == 'number' or of == 'integer' or of == 'boolean'
end

---@param schema table of all arguments
---@param given table
---@return table
local function with_defaults(schema, given)
  local copy = vim.deepcopy(schema)
  for name, property in pairs(copy.properties or {}) do
    if given[name] ~= nil then
      property.default = given[name]
    end
  end
  return copy
end

---@param parts mcp-tools.DashboardParts
---@param name string
---@param args table
local function call(parts, name, args)
  last[name] = args
  parts.run(('call %s %s'):format(name, json.encode(args) or '{}'))
end

--- What no form can ask for is typed as JSON.
---@param parts mcp-tools.DashboardParts
---@param name string
local function ask_json(parts, name)
  local default = last[name] and json.encode(last[name]) or '{}'
  vim.ui.input({ prompt = ('%s, arguments as JSON: '):format(name), default = default }, function(text)
    if text then
      local ok, args = pcall(vim.json.decode, text)
      last[name] = ok and type(args) == 'table' and args or last[name]
      parts.run(('call %s %s'):format(name, text))
    end
  end)
end

--- Asks for the arguments of a tool, and calls it.
---@param parts mcp-tools.DashboardParts
---@param name string
return function(parts, name)
  local tool = parts.registry:find_tool(name)
  if not tool then
    return parts.run('call ' .. name) -- says that there is none, and why
  end
  parts.close() -- its answer comes in a window of its own
  local schema, plain = tool.input_schema, true
  for _, property in pairs(schema.properties or {}) do
    -- Schemas of mounted servers are not checked before: the form needs one that compiles.
    plain = plain and is_plain(property) and (tool.check ~= nil or json_schema.compile(property) ~= nil)
  end
  if not plain then
    return ask_json(parts, name)
  elseif not next(schema.properties or {}) then
    return call(parts, name, vim.empty_dict())
  end
  form.ask({ message = name, requestedSchema = with_defaults(schema, last[name] or {}) }, function(result)
    if result.action == 'accept' then
      call(parts, name, result.content)
    end
  end, function()
    return true
  end)
end
