--- The message history (`:messages`), with secrets redacted.

local redact = require('mcp-tools.privacy.redact')

local M = {}

--- Maximum size of the returned history in bytes, from its end.
local MAX_BYTES = 64 * 1024
--- Number of messages requested first, and at most.
local FIRST_COUNT, MAX_COUNT = 10, 100000

--- Returns at least `MAX_BYTES` of the newest messages if there are as many. Requesting all of them would be slow. The
--- captured output never causes a "more" prompt.
---@param pause? fun() called between pieces of work
---@return string
function M.newest(pause)
  local count, text, before = FIRST_COUNT ---@diagnostic disable-line: unbalanced-assignments
  repeat
    text, before = vim.api.nvim_exec2(('%dmessages'):format(count), { output = true }).output, text
    count = 2 * count
    if pause then
      pause()
    end
  until #text > MAX_BYTES or text == before or count > MAX_COUNT
  return text
end

--- Returns the redacted end of the history.
---@param pause fun()
---@return string text
---@return boolean cut whether older messages are left out
function M.text(pause)
  local text = M.newest(pause)
  local cut = #text > MAX_BYTES
  if cut then
    text = text:sub(-MAX_BYTES):gsub('^[^\n]*\n', '', 1)
  end
  return redact.text(text, pause), cut
end

return M
