--- Highlight groups of the windows of an interview.

local style = require('mcp-tools.ui.float.style')

return style.new('McpToolsInterview', { Question = 'Title', Mark = 'Identifier', Chosen = 'String' })
