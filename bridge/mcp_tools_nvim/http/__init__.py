"""HTTP on aiohttp, which nobody else imports: listener, guards, endpoints.

Three transports: sessions over streamable HTTP and over SSE, and the stateless era.
"""
