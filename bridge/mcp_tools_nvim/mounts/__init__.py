"""Mounted MCP servers: the bridge is their client, and Neovim exposes their tools.

Only `mount` is imported at start-up; the rest, and the SDK, is imported with the first mount.
"""
