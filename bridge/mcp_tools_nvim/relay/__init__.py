"""MCP over stdin and stdout, for agents that start their servers themselves: a relay to the bridge."""
