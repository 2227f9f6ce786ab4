--- Where CodeCompanion looks for the extension `mcp_tools`.

return require('mcp-tools.callers.codecompanion')
