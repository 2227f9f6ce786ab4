"""The proof by which a bridge shows that it knows a token and tells it not: a MAC over its port and a nonce.

Receives: a token, a port, a nonce. Sends: the proof. Does not know about: who asks, HTTP.

Anybody may ask for any number of proofs, so a proof must be nothing else: it has a label of its own, and keys
are made the other way round, the label being the key and the token the message. And who passes the question
on to another bridge of this user gets a proof for that one's port.
"""

from __future__ import annotations

import hmac

_LABEL = "mcp-tools.nvim health proof 1"


def prove(token: str, port: int, nonce: str) -> str:
    """The proof of who serves `port` and knows `token`."""
    return hmac.new(token.encode(), f"{_LABEL}\0{port}\0{nonce}".encode(), "sha256").hexdigest()
