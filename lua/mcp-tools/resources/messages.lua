--- What the editor has said.

local redact = require('mcp-tools.files.redact')
local turns = require('mcp-tools.util.turns')
local watch = require('mcp-tools.editor.watch')

--- The end of a longer history is given.
local MAX_BYTES = 64 * 1024
--- Messages have no event.
local POLL_MS = 1000

--- The history, without showing anything: output that is caught never stops at a "more" prompt.
---@return string
local function history()
  return vim.api.nvim_exec2('messages', { output = true }).output
end

return {
  name = 'messages',
  uri = 'nvim://messages',
  title = 'Messages',
  description = 'The history of messages and errors that the editor has shown (`:messages`), the latest last. What'
    .. ' looks like a secret is left out.',
  mime_type = 'text/plain',
  tags = { 'editor' },
  run = function(ctx)
    local text = history()
    local cut = #text > MAX_BYTES
    if cut then
      text = text:sub(-MAX_BYTES):gsub('^[^\n]*\n', '', 1)
    end
    return (cut and '…\n' or '') .. redact.text(text, turns.of(ctx))
  end,
  watch = function(changed)
    return watch.poll(POLL_MS, history, changed)
  end,
}
