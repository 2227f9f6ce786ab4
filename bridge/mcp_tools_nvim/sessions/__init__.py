"""Sessions of MCP clients over any transport: their streams, their files, and the registry of all."""
