"""The proof of who serves a port: that it knows the token, which nobody is told to find out.

The proof is a MAC over port and nonce. Anybody may ask for any number of proofs, so a proof must be nothing
else: it has a label of its own, and keys are made the other way round, the label being the key and the token
the message. And who passes the question on to another bridge of this user gets a proof for that one's port.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable

_LABEL = "mcp-tools.nvim health proof 1"


def prove(token: str, port: int, nonce: str) -> str:
    """The proof of who serves `port` and knows `token`."""
    return hmac.new(token.encode(), f"{_LABEL}\0{port}\0{nonce}".encode(), "sha256").hexdigest()


def proves(proof: str, port: int, nonce: str, tokens: Iterable[str]) -> bool:
    """Tells whether `proof` shows that who serves `port` knows one of `tokens`."""
    given = proof.encode("utf-8", "replace")
    return any(hmac.compare_digest(prove(token, port, nonce).encode(), given) for token in tokens)
