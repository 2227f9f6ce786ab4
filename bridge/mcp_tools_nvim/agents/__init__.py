"""Endpoints for terminal agents that find this Neovim: their sockets, guards and sessions.

Which agents there are, and what each of them gets, is decided in Lua.
"""
