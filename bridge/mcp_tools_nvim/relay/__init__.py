"""MCP over stdin and stdout, for clients that start their servers: a relay to the bridge."""
