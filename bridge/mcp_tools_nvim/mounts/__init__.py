"""Mounted MCP servers: this process is their client, and the editor offers what they have.

Only `door` is imported at start-up; the rest, and with it the SDK, comes with the first mount.
"""
