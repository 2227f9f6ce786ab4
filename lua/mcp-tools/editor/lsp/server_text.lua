--- Texts of language servers, as results may have them: labels, details, titles, messages.

local redact = require('mcp-tools.privacy.redact')
local time_slice = require('mcp-tools.util.time_slice')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

--- A text without secrets, by the lines of sensitive buffers that are known (`refresh`).
---@param text any a string, or a table with one as `value` (MarkupContent of the protocol)
---@return string text '' for anything else
function M.text(text)
  if type(text) == 'table' then
    text = text.value
  end
  return type(text) == 'string' and (utf8.repair(redact.quoted(text))) or ''
end

--- The same, where an answer leaves out what is empty.
---@param text any
---@return string?
function M.some(text)
  local shown = M.text(text)
  return shown ~= '' and shown or nil
end

--- Learns the lines of sensitive buffers as they are now.
---@param ctx mcp-tools.Ctx in a coroutine
function M.refresh(ctx)
  redact.refresh(time_slice.of(ctx))
end

return M
