--- `:McpTools terminal`: an agent in a terminal of this editor.

local ide = require('mcp-tools.ide')
local notify = require('mcp-tools.notify')
local terminal = require('mcp-tools.ide.terminal')

---@type mcp-tools.Subcommand
return {
  usage = 'AGENT [ARGUMENTS]',
  description = 'start an agent in a terminal; it has your tools, but for gemini, and where it is a companion it finds'
    .. ' this editor, without a change of its settings',
  run = function(rest)
    local words = vim.split(rest, '%s+', { trimempty = true })
    local name = table.remove(words, 1)
    if not name then
      return notify.error(('which agent? :McpTools terminal %s'):format(table.concat(ide.names(), ' | ')))
    end
    terminal.start(name, words, function(fault)
      if fault then
        notify.error(fault)
      end
    end)
  end,
  complete = function()
    return ide.names()
  end,
}
