--- What a client declared about its files (extension `ai.nimblebrain/host-resources`).
---
--- Receives: a call, with the capabilities of its client and its session.
--- Sends: answers: may it be read, listed, with which schemes, up to which size. A malformed part counts as absent.
--- Does not know about: requests, tools.
---
--- The form is `{ read = { enabled, maxSize }, list = { enabled }, schemes = { … } }`; `schemes` may stand in `read`.

local M = {}

M.EXTENSION = 'ai.nimblebrain/host-resources'

--- JSON's null is the same as nothing.
function M.given(value)
  if value ~= vim.NIL then
    return value
  end
end

--- A table with names, not a list of values.
---@param value any
---@return table?
function M.object(value)
  return type(value) == 'table' and (next(value) == nil or not vim.islist(value)) and value or nil
end

---@param value any
---@return boolean
function M.is_string_list(value)
  if type(value) ~= 'table' or not vim.islist(value) then
    return false
  end
  for _, item in ipairs(value) do
    if type(item) ~= 'string' then
      return false
    end
  end
  return true
end

--- The declaration; none without a session: only there can a client be asked for files.
---@param call mcp-tools.Call
---@return table?
local function declared(call)
  if not call.session or (call.kind and call.kind.asks_nothing) then
    return nil
  end
  for _, place in ipairs({ 'extensions', 'experimental' }) do
    local found = M.object((M.object(call.capabilities[place]) or {})[M.EXTENSION])
    if found then
      return found
    end
  end
end

---@param call mcp-tools.Call
---@return string[]? schemes nil when it names none
---@return boolean? malformed
function M.schemes(call)
  local all = declared(call) or {}
  local schemes = M.given((M.object(all.read) or {}).schemes) or M.given(all.schemes)
  if schemes ~= nil and not M.is_string_list(schemes) then
    return nil, true
  end
  return schemes
end

--- What it says about reading; nil when that is not offered, or when what it says makes no sense.
---@param call mcp-tools.Call
---@return { schemes: string[]?, max_size: number? }?
function M.readable(call)
  local read = M.object((declared(call) or {}).read) or {}
  local schemes, malformed = M.schemes(call)
  local max_size = M.given(read.maxSize)
  local fits = max_size == nil or (type(max_size) == 'number' and max_size >= 1)
  return read.enabled == true and fits and not malformed and { schemes = schemes, max_size = max_size } or nil
end

---@param call mcp-tools.Call
---@return boolean
function M.listable(call)
  local list = M.object((declared(call) or {}).list)
  return list ~= nil and list.enabled == true
end

---@param schemes string[]?
---@param scheme string
---@return boolean
function M.has(schemes, scheme)
  for _, known in ipairs(schemes or {}) do
    if known:lower() == scheme:lower() then
      return true
    end
  end
  return false
end

return M
