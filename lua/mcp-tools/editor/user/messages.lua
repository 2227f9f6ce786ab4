--- Messages: what the editor has said (`:messages`), without what looks like a secret.

local redact = require('mcp-tools.privacy.redact')

local M = {}

--- The end of a longer history is given.
local MAX_BYTES = 64 * 1024
--- Messages that are asked for at first, and at most.
local FIRST, MOST = 10, 100000

--- As many of the last ones as are needed: thousands of long ones take long to be put together. Nothing is shown:
--- output that is caught never stops at a "more" prompt.
---@param pause? fun() called between pieces of work
---@return string
function M.newest(pause)
  local count, text, before = FIRST
  repeat
    text, before = vim.api.nvim_exec2(('%dmessages'):format(count), { output = true }).output, text
    count = 2 * count
    if pause then
      pause()
    end
  until #text > MAX_BYTES or text == before or count > MOST
  return text
end

--- The end of the history, as it may be given.
---@param pause fun()
---@return string text
---@return boolean cut the beginning is left out
function M.text(pause)
  local text = M.newest(pause)
  local cut = #text > MAX_BYTES
  if cut then
    text = text:sub(-MAX_BYTES):gsub('^[^\n]*\n', '', 1)
  end
  return redact.text(text, pause), cut
end

return M
