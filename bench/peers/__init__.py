"""Servers that answer questions about code: ours, other servers, and the floor."""
