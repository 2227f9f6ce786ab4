"""Mounted MCP servers: this process is their client, and the editor exposes their tools.

Only `loader` is imported at start-up; the rest, and with it the SDK, comes with the first mount.
"""
