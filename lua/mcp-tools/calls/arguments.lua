--- Arguments of a call: defaults filled in, checked against the schema, what is surplus noted.

local errors = require('mcp-tools.errors')
local foreign_schema = require('mcp-tools.registry.definition.foreign_schema')
local log = require('mcp-tools.log')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

--- Names of surplus arguments that are logged for one tool; a client may make up any number of them.
local MAX_NOTED = 10
--- Bytes of such a name.
local MAX_NAME = 80

--- Clients add arguments of their own to the short form; that is allowed, and logged once for each.
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
        log.info("tool '%s': clients send an argument that its definition does not have: %s", definition.name, name)
      end
    end
  end
end

--- About 15 ms: what a client sends must not hold up the editor.
local MAX_STEPS = 300000
local STRICT, LENIENT = { strict = true, steps = MAX_STEPS }, {}

---@param name string the tool's
---@param faults mcp-tools.Fault[]
---@param hint string? what else there is to say
---@return mcp-tools.Error
local function invalid(name, faults, hint)
  local lines = {}
  for i, fault in ipairs(faults) do
    lines[i] = ('%s: %s'):format(fault.field, fault.message)
  end
  local text = ('Invalid arguments for %s: %s%s'):format(name, table.concat(lines, '; '), hint or '')
  return errors.new('validation_error', text, faults)
end

--- Does a tool take arguments that it does not name? Those of another are faults, and told as such.
---@param definition mcp-tools.Definition
---@return boolean
local function is_open(definition)
  return definition.args ~= nil and definition.input_schema.additionalProperties ~= false
end

--- Who misses one argument has often given it by another name: those that the tool does not have.
---@param definition mcp-tools.Definition
---@param args table
---@return string? hint
local function unknown_names(definition, args)
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

--- Arguments that a tool may have.
---@param definition mcp-tools.Definition
---@param args any owned by the call; nil and null are no arguments
---@param exact boolean? empty tables say whether they are arrays or objects, as those off the wire do
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
    return nil, invalid(definition.name, faults, unknown_names(definition, args))
  end
  if is_open(definition) then
    note_unknown(definition, args)
  end
  return args
end

return M
