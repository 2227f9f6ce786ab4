--- Checks that definitions of tools, resources and prompts share.

local schema_faults = require('mcp-tools.schema.faults')
local utf8 = require('mcp-tools.util.utf8')
local value = require('mcp-tools.schema.value')

local M = {}

M.UNKNOWN = 'unknown field'
--- Some clients cut longer descriptions. Bytes.
local MAX_DESCRIPTION = 4096

---@class mcp-tools.Findings
---@field faults mcp-tools.Fault[]
---@field lint mcp-tools.Fault[]

---@return mcp-tools.Findings
function M.findings()
  return { faults = {}, lint = {} }
end

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

-- Parts of definitions ---------------------------------------------------------------------------------------------

--- Returns the fields of a definition without those that are `vim.NIL`.
---@param def table
---@return table
function M.given(def)
  local out = {}
  for field, v in pairs(def) do
    if v ~= vim.NIL then
      out[field] = v
    end
  end
  return out
end

--- Checks every field with its rule.
---@param def table
---@param rules table<string, fun(v: any): string?>
---@param required string[]
---@param out mcp-tools.Findings
function M.check_fields(def, rules, required, out)
  for _, field in ipairs(required) do
    if def[field] == nil then
      M.note(out.faults, field, 'is required')
    end
  end
  for _, field in ipairs(value.names(def)) do
    local rule = rules[field]
    local message = rule and rule(def[field])
    if message then
      M.note(out.faults, field, message)
    elseif not rule then
      M.note(out.lint, tostring(field), M.UNKNOWN)
    end
  end
  if type(def.description) == 'string' and #def.description > MAX_DESCRIPTION then
    M.note(out.lint, 'description', ('longer than %d bytes; some clients cut it there'):format(MAX_DESCRIPTION))
  end
end

--- Checks that exactly one of the fields `callback` and `run` is set.
---@param def table
---@param callback 'execute'|'read'|'get'
---@param out mcp-tools.Findings
function M.check_handler(def, callback, out)
  if def[callback] ~= nil and def.run ~= nil then
    M.note(out.faults, 'run', ('cannot be used together with %s'):format(callback))
  elseif def[callback] == nil and def.run == nil then
    M.note(out.faults, callback, 'is required (or run)')
  end
end

--- Checks additional fields for clients, `callers.mcp.meta` and `callers.mcp.icons`.
---@param callers any
---@param out mcp-tools.Findings
function M.check_callers(callers, out)
  if type(callers) ~= 'table' then
    return
  end
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
function M.lines(list)
  local out = {}
  for i, entry in ipairs(list) do
    out[i] = ('%s: %s'):format(entry.field, entry.message)
  end
  return out
end

--- Formats all faults, one per line: `resource 'nvim://x': mime_type: …`. Unknown fields follow, because a missing
--- field may be misspelled.
---@param what string
---@param name any
---@param out { faults: mcp-tools.Fault[], lint: mcp-tools.Fault[] }
---@return string
function M.report(what, name, out)
  local unknown = vim.tbl_filter(function(each)
    return each.message == M.UNKNOWN
  end, out.lint)
  local sanitize = require('mcp-tools.util.sanitize') -- start-up cost: only for faults
  local shown = type(name) == 'string' and sanitize.line(name) or '?'
  local texts = M.lines(vim.list_extend(vim.list_slice(out.faults), unknown))
  for i, line in ipairs(texts) do
    texts[i] = ("%s '%s': %s"):format(what, shown, line)
  end
  return table.concat(texts, '\n')
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
