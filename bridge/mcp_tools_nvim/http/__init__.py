"""The HTTP server, on aiohttp: listener, guards, handlers, and three transports.

The transports are streamable HTTP with sessions, legacy SSE, and the stateless era (HTTP without sessions).
"""
