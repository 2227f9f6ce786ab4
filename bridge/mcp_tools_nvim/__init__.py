"""The MCP server of mcp-tools.nvim: a child process of Neovim that speaks HTTP to AI clients."""

__version__ = "0.1.0"
