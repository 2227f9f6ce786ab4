"""Endpoints for terminal agents that find this Neovim: their sockets, guards and sessions.

Lua decides which agents have an endpoint, and which tools each of them gets.
"""
