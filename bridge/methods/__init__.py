"""The methods of MCP, one file for each family; `server.py` puts them together."""
