"""The methods of MCP, one file for each family; `mcp/server.py` puts them together."""
