--- `:McpTools answer`: goes to the window of an interview.

local interview = require('mcp-tools.ui.interview')

---@type mcp-tools.Subcommand
return {
  description = 'go to the questions that a tool asks you',
  run = function()
    interview.focus()
  end,
}
