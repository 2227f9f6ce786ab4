"""Sessions of MCP clients, whatever their transport: ids, streams, one session, and all of them."""
