"""HTTP ⇄ MCP messages: sessions over streamable HTTP and over SSE, and the stateless era.

Nothing here is imported by the SDK or imports it; `kernel.py` stands between.
"""
