--- Arguments of a tool call: fills in defaults, checks them against the schema, logs unknown ones.

local errors = require('mcp-tools.errors')
local log = require('mcp-tools.log')
local schemas = require('mcp-tools.registry.definition.schemas')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

--- Maximum number of unknown arguments that are logged for one tool or named in one error, and bytes of a name.
local MAX_NAMES, MAX_NAME = 10, 80

--- Limits the time that a client's arguments can block the main thread to about 15 ms.
local MAX_STEPS = 300000
local STRICT, LENIENT = { strict = true, steps = MAX_STEPS }, {}

--- Returns the error for invalid arguments.
---@param name string of the definition
---@param faults mcp-tools.Fault[]
---@param hint string? appended to the message
---@return mcp-tools.Error
function M.error(name, faults, hint)
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
---@return string[] names sorted
local function unknown_names(definition, args)
  local names = {}
  if definition.args and definition.input_schema.additionalProperties ~= false then
    for name in pairs(args) do
      if definition.args[name] == nil then
        names[#names + 1] = utf8.cut(tostring(name), MAX_NAME)
      end
    end
  end
  table.sort(names)
  return #names > MAX_NAMES and vim.list_slice(names, 1, MAX_NAMES) or names
end

--- Logs each unknown argument of a tool once.
---@param definition mcp-tools.Definition
---@param names string[]
local function log_unknown(definition, names)
  for _, name in ipairs(names) do
    definition.logged = definition.logged or {}
    if not definition.logged[name] and vim.tbl_count(definition.logged) < MAX_NAMES then
      definition.logged[name] = true
      log.info("tool '%s': a client sent the unknown argument '%s'", definition.name, name)
    end
  end
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
    return nil, M.error(definition.name, { { field = '(root)', message = 'must be an object, got ' .. type(args) } })
  end
  if not definition.check then
    if #args > 0 then
      return nil, M.error(definition.name, { { field = '(root)', message = 'must be an object, got a list' } })
    end
    return exact and args or schemas.shaped(args, definition.input_schema)
  end
  local opts = exact and STRICT or LENIENT
  local too_large
  args, too_large = definition.check:fill(args, opts)
  if too_large then
    return nil, M.error(definition.name, { too_large })
  end
  local ok, faults = definition.check:check(args, opts)
  local unknown = unknown_names(definition, args)
  if not ok then
    -- A missing argument was often sent under another name.
    local hint = #unknown > 0 and (' (it has no argument %s)'):format(table.concat(unknown, ', ')) or nil
    return nil, M.error(definition.name, faults, hint)
  end
  log_unknown(definition, unknown)
  return args
end

return M
