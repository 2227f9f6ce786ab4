--- Messages: what the editor has said (`:messages`), without what looks like a secret.
---
--- Receives: a pause between pieces of work.
--- Sends: text.
--- Does not know about: resources, tools.

local redact = require('mcp-tools.files.redact')

local M = {}

--- The end of a longer history is given.
local MAX_BYTES = 64 * 1024

--- The history, without showing anything: output that is caught never stops at a "more" prompt.
---@return string
function M.history()
  return vim.api.nvim_exec2('messages', { output = true }).output
end

--- The end of the history, as it may be given.
---@param pause fun()
---@return string text
---@return boolean cut the beginning is left out
function M.text(pause)
  local text = M.history()
  local cut = #text > MAX_BYTES
  if cut then
    text = text:sub(-MAX_BYTES):gsub('^[^\n]*\n', '', 1)
  end
  return redact.text(text, pause), cut
end

return M
