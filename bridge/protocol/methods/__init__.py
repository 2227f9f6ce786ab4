"""The methods of MCP, one file for each family; `protocol/server.py` puts them together."""
