"""MCP on the SDK's kernel: turns requests into calls and other requests to Neovim."""
