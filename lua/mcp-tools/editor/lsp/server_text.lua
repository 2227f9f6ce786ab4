--- Texts from language servers (labels, details, titles, messages), safe for results.

local redact = require('mcp-tools.privacy.redact')
local time_slice = require('mcp-tools.util.time_slice')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

--- Returns a text without secrets. Call `refresh` first, so that lines of sensitive buffers are recognized.
---@param text any a string, or a table with one as `value` (MarkupContent of the protocol)
---@return string text '' for anything else
function M.text(text)
  if type(text) == 'table' then
    text = text.value
  end
  return type(text) == 'string' and (utf8.repair((text:gsub('[^\r\n]+', redact.line)))) or ''
end

--- Like `text`, but for code of readable files: values that are assigned to secret-looking names are kept.
---@param text string
---@return string
function M.code(text)
  return (utf8.repair(redact.quoted(text)))
end

--- Reads the lines of sensitive buffers again.
---@param ctx mcp-tools.Ctx inside a coroutine
function M.refresh(ctx)
  redact.refresh(time_slice.of(ctx))
end

return M
