--- Shows a client's message to the user, with the client's name.

local notify = require('mcp-tools.notify')
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

return M
