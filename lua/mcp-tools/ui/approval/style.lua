--- Highlight groups of the window that asks for approval.

local style = require('mcp-tools.ui.float.style')

return style.new('McpToolsApproval', {
  Label = 'Identifier',
  Outside = 'WarningMsg',
  Added = 'Added',
  Removed = 'Removed',
  Changed = 'Changed',
})
