--- Arguments of a tool call: fills in defaults, checks them against the schema, logs unknown ones.

local errors = require('mcp-tools.errors')
local foreign_schema = require('mcp-tools.registry.definition.foreign_schema')
local log = require('mcp-tools.log')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

--- Maximum number of unknown arguments that are logged for one tool.
local MAX_NOTED = 10
--- Maximum bytes of such a name.
local MAX_NAME = 80

--- Logs each argument that the definition does not have, once. They are allowed: some clients add their own.
---@param definition mcp-tools.Definition
---@param args table
local function note_unknown(definition, args)
  for name in pairs(args) do
    if definition.args[name] == nil then
      local noted = definition.noted or {}
      definition.noted = noted
      if #noted >= MAX_NOTED then
        return
      end
      name = utf8.cut(tostring(name), MAX_NAME)
      if not noted[name] then
        noted[name] = true
        table.insert(noted, name)
        log.info("tool '%s': a client sent the unknown argument '%s'", definition.name, name)
      end
    end
  end
end

--- Limits the time that a client's arguments can block the main thread to about 15 ms.
local MAX_STEPS = 300000
local STRICT, LENIENT = { strict = true, steps = MAX_STEPS }, {}

---@param name string of the tool
---@param faults mcp-tools.Fault[]
---@param hint string? appended to the message
---@return mcp-tools.Error
local function invalid(name, faults, hint)
  local lines = {}
  for i, fault in ipairs(faults) do
    lines[i] = ('%s: %s'):format(fault.field, fault.message)
  end
  local text = ('Invalid arguments for %s: %s%s'):format(name, table.concat(lines, '; '), hint or '')
  return errors.new('validation_error', text, faults)
end

--- Returns whether a tool accepts unknown arguments.
---@param definition mcp-tools.Definition
---@return boolean
local function is_open(definition)
  return definition.args ~= nil and definition.input_schema.additionalProperties ~= false
end

--- Lists the unknown arguments, because a missing argument was often sent under another name.
---@param definition mcp-tools.Definition
---@param args table
---@return string? hint
local function unknown_arguments_hint(definition, args)
  local names = {}
  for name in pairs(is_open(definition) and args or {}) do
    if definition.args[name] == nil then
      names[#names + 1] = utf8.cut(tostring(name), MAX_NAME)
    end
  end
  if #names == 0 then
    return nil
  end
  table.sort(names)
  return ' (it has no argument ' .. table.concat(names, ', ', 1, math.min(#names, MAX_NOTED)) .. ')'
end

--- Checks the arguments of a tool and fills in defaults.
---@param definition mcp-tools.Definition
---@param args any changed in place; nil and null mean no arguments
---@param exact boolean? empty tables are marked as arrays or objects, as those that the bridge sends are
---@return table? value
---@return mcp-tools.Error? err
function M.check(definition, args, exact)
  if args == nil or args == vim.NIL then
    args = vim.empty_dict()
  end
  if type(args) ~= 'table' then
    return nil, invalid(definition.name, { { field = '(root)', message = 'must be an object, got ' .. type(args) } })
  end
  if not definition.check then
    if #args > 0 then
      return nil, invalid(definition.name, { { field = '(root)', message = 'must be an object, got a list' } })
    end
    return exact and args or foreign_schema.shaped(args, definition.input_schema)
  end
  local opts = exact and STRICT or LENIENT
  local too_large
  args, too_large = definition.check:fill(args, opts)
  if too_large then
    return nil, invalid(definition.name, { too_large })
  end
  local ok, faults = definition.check:check(args, opts)
  if not ok then
    return nil, invalid(definition.name, faults, unknown_arguments_hint(definition, args))
  end
  if is_open(definition) then
    note_unknown(definition, args)
  end
  return args
end

return M
