--- Messages: those of clients, shown to the user with the client's name, and the history (`:messages`), with secrets
--- redacted.

local notify = require('mcp-tools.notify')
local redact = require('mcp-tools.privacy.redact')
local sanitize = require('mcp-tools.util.sanitize')
local trim = require('mcp-tools.util.trim')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

M.LEVELS = { 'info', 'warn', 'error' }

local MAX_NAME = 40

--- Shows the message. Without a client name, the caller's name is used.
---@param text string
---@param level 'info'|'warn'|'error'
---@param ctx mcp-tools.Ctx
function M.notify(text, level, ctx)
  local name = sanitize.line(utf8.cut(ctx.client.name or ctx.host, MAX_NAME))
  -- Indent further lines, so that they do not look like our own messages in `:messages`.
  local lines = trim(sanitize.text(text)):gsub('\n', '\n  ')
  notify[level](('%s: %s'):format(name, lines))
end

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
