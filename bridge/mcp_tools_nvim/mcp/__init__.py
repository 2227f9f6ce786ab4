"""MCP, on the MCP SDK: turns clients' requests into calls and other requests to Neovim."""
