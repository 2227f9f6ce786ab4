--- `:McpTools log`: the end of the log.

local log = require('mcp-tools.log')
local sanitize = require('mcp-tools.util.sanitize')
local scratch = require('mcp-tools.ui.layout.scratch')

--- About a thousand lines: enough to see what went on, quick to read from a file of ten megabytes.
local TAIL = 128 * 1024

local show

function show()
  log.tail(TAIL, function(lines)
    -- Nothing was written yet, or it cannot be: what this editor remembers is better than an error.
    lines = lines or log.lines()
    if #lines == 0 then
      lines = { 'The log is empty: ' .. log.path() }
    end
    lines = vim.tbl_map(sanitize.text, lines)
    scratch.show('log', lines, { filetype = 'log', at_end = true, again = show })
  end)
end

---@type mcp-tools.Subcommand
return {
  description = 'show the end of the log',
  run = show,
}
