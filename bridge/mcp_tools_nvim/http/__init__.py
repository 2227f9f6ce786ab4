"""The HTTP server, on aiohttp: listener, guards, handlers, and three transports.

The transports are streamable HTTP with sessions, legacy SSE, and streamable HTTP without sessions: protocol
version 2026-07-28, the stateless era.
"""
