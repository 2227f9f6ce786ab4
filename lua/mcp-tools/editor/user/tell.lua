--- A client's message for the person, told as such.

local notify = require('mcp-tools.notify')
local sanitize = require('mcp-tools.util.sanitize')
local trim = require('mcp-tools.util.trim')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

M.LEVELS = { 'info', 'warn', 'error' }

local MAX_NAME = 40

--- Tells it. A host without a client's name is named itself.
---@param text string
---@param level 'info'|'warn'|'error'
---@param ctx mcp-tools.Ctx
function M.tell(text, level, ctx)
  local name = sanitize.line(utf8.cut(ctx.client.name or ctx.host, MAX_NAME))
  -- In `:messages` each line stands for itself: one that goes on must not look like a message of ours.
  local lines = trim(sanitize.text(text)):gsub('\n', '\n  ')
  notify[level](('%s: %s'):format(name, lines))
end

return M
