--- Checks that definitions of tools, resources and prompts share.

local schema_faults = require('mcp-tools.schema.faults')
local utf8 = require('mcp-tools.util.utf8')
local value = require('mcp-tools.schema.value')

local M = {}

M.UNKNOWN = 'unknown field'
--- Some clients cut longer descriptions (bytes), and cut, rename or drop longer names.
local MAX_DESCRIPTION, MAX_NAME = 4096, 40

---@class mcp-tools.Findings
---@field faults mcp-tools.Fault[]
---@field lint mcp-tools.Fault[]

---@param list mcp-tools.Fault[]
---@param field string
---@param message string
function M.note(list, field, message)
  list[#list + 1] = { field = field, message = message }
end

-- Rules: each returns why a value is invalid, or nil ---------------------------------------------------------------

function M.text(v)
  if type(v) ~= 'string' then
    return 'must be a string'
  elseif utf8.invalid_at(v) then
    return 'is not UTF-8'
  end
end

function M.filled_text(v)
  return M.text(v) or (not v:find('%S') and 'must not be empty') or nil
end

---@param ... type
function M.of_type(...)
  local kinds = { ... }
  return function(v)
    if not vim.list_contains(kinds, type(v)) then
      return 'must be a ' .. table.concat(kinds, ' or a ')
    end
  end
end

function M.texts(v)
  if not value.is_array(v) then
    return 'must be a list of strings'
  end
  for i, item in ipairs(v) do
    if type(item) ~= 'string' or utf8.invalid_at(item) then
      return ('[%d] must be a string'):format(i)
    end
  end
end

--- A name. All characters must be visible, so that different names look different.
function M.name(v)
  local fault = M.filled_text(v)
  if fault or v:find('^[%w_-]+$') then
    return fault
  end
  local sanitize = require('mcp-tools.util.sanitize') -- start-up cost: only for unusual names
  return sanitize.line(v) ~= v and 'must not have invisible characters' or nil
end

function M.milliseconds(v)
  if type(v) ~= 'number' or v ~= v or v < 0 or v == math.huge then
    return 'must be a number of milliseconds, 0 or more (0 = none)'
  end
end

--- Adds fields of which only the type is checked.
---@param rules table<string, fun(v: any): string?>
---@param typed table<string, string> types, separated by spaces → fields
---@return table<string, fun(v: any): string?> rules
function M.rules(rules, typed)
  for types, fields in pairs(typed) do
    local rule = M.of_type(unpack(vim.split(types, ' ')))
    for field in fields:gmatch('%S+') do
      rules[field] = rule
    end
  end
  return rules
end

-- Parts of definitions ---------------------------------------------------------------------------------------------

--- Checks every field with its rule.
---@param def table
---@param rules table<string, fun(v: any): string?>
---@param required string[]
---@param out mcp-tools.Findings
---@param at string? path of `def`
function M.check_fields(def, rules, required, out, at)
  at = at and at .. '.' or ''
  for _, field in ipairs(required) do
    if def[field] == nil then
      M.note(out.faults, at .. field, 'is required')
    end
  end
  for _, field in ipairs(value.names(def)) do
    local rule = rules[field]
    local message = rule and rule(def[field])
    if message then
      M.note(out.faults, at .. field, message)
    elseif not rule then
      M.note(out.lint, at .. tostring(field), M.UNKNOWN)
    end
  end
  if type(def.description) == 'string' and #def.description > MAX_DESCRIPTION then
    M.note(out.lint, at .. 'description', ('longer than %d bytes; some clients cut it there'):format(MAX_DESCRIPTION))
  end
end

--- Reports names that some clients change.
---@param name any
---@param pattern string
---@param advice string if the name does not match
---@param out mcp-tools.Findings
function M.check_name(name, pattern, advice, out)
  if type(name) == 'string' and #name > MAX_NAME then
    M.note(out.lint, 'name', ('longer than %d characters'):format(MAX_NAME))
  end
  if type(name) == 'string' and not name:find(pattern) then
    M.note(out.lint, 'name', 'has characters other than ' .. advice)
  end
end

--- Checks additional fields for clients, `callers.mcp.meta` and `callers.mcp.icons`.
---@param callers table
---@param out mcp-tools.Findings
local function check_callers(callers, out)
  for _, name in ipairs(value.names(callers)) do
    if type(callers[name]) ~= 'table' then
      M.note(out.faults, 'callers.' .. tostring(name), 'must be a table')
    end
  end
  local mcp = type(callers.mcp) == 'table' and callers.mcp or {}
  for key, is in pairs({ meta = value.is_object, icons = value.is_array }) do
    local v = mcp[key]
    local fault = v ~= nil and schema_faults.data(v)
    if fault then
      M.note(out.faults, 'callers.mcp.' .. key, fault.message)
    elseif v ~= nil and not is(v) then
      M.note(out.faults, 'callers.mcp.' .. key, key == 'meta' and 'must map names to data' or 'must be a list')
    end
  end
end

---@param list mcp-tools.Fault[]
---@return string[]
local function lines(list)
  return vim.tbl_map(function(entry)
    return ('%s: %s'):format(entry.field, entry.message)
  end, list)
end

--- Begins to check a definition: fields, handler and `callers`.
---@param what 'tool'|'resource'|'prompt'
---@param def any
---@param rules table<string, fun(v: any): string?>
---@param required string[]
---@param callback 'execute'|'read'|'get' field of the handler, unless it is `run`
---@return table? def a copy without fields that are `vim.NIL`
---@return mcp-tools.Findings out
---@return string? err if it is not a table
function M.begin(what, def, rules, required, callback)
  if type(def) ~= 'table' then
    return nil, { faults = {}, lint = {} }, ('%s: must be a table, got %s'):format(what, type(def))
  end
  local given, out = {}, { faults = {}, lint = {} }
  for field, v in pairs(def) do
    if v ~= vim.NIL then
      given[field] = v
    end
  end
  M.check_fields(given, rules, required, out)
  if given[callback] ~= nil and given.run ~= nil then
    M.note(out.faults, 'run', ('cannot be used together with %s'):format(callback))
  elseif given[callback] == nil and given.run == nil then
    M.note(out.faults, callback, 'is required (or run)')
  end
  if type(given.callers) == 'table' then
    check_callers(given.callers, out)
  end
  return given, out
end

--- Returns the normalized definition. If it has faults, returns all of them, one per line: `resource 'nvim://x':
--- mime_type: …`. Unknown fields follow, because a missing field may be misspelled.
---@param what 'tool'|'resource'|'prompt'
---@param name any
---@param def table
---@param rules table<string, fun(v: any): string?> the known fields
---@param out mcp-tools.Findings
---@param made table fields that replace those of the definition
---@return table? normalized, string? err
function M.finish(what, name, def, rules, out, made)
  if #out.faults > 0 then
    local unknown = vim.tbl_filter(function(each)
      return each.message == M.UNKNOWN
    end, out.lint)
    local sanitize = require('mcp-tools.util.sanitize') -- start-up cost: only for faults
    local start = ("%s '%s': "):format(what, type(name) == 'string' and sanitize.line(name) or '?')
    return nil, start .. table.concat(lines(vim.list_extend(out.faults, unknown)), '\n' .. start)
  end
  for field in pairs(rules) do
    if made[field] == nil then
      made[field] = value.copy(def[field])
    end
  end
  made.style = def.run and 'run' or 'execute'
  made.lint = lines(out.lint)
  return made
end

--- Returns icons and metadata for clients.
---@param def table normalized
---@return table? icons, table? meta
function M.extras(def)
  local mcp = def.callers and def.callers.mcp or {}
  local icons, meta = mcp.icons, mcp.meta
  return icons and #icons > 0 and icons or nil, meta and next(meta) and meta or nil
end

return M
