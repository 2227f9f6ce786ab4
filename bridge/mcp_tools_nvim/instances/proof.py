"""What is derived from the token: the proof that the process at a port knows it, and the token of `lsp`.

The proof is a MAC over port and nonce. Anyone can request proofs, so a proof must not be usable as anything
else: it has its own label, and other keys are derived with the label as key and the token as message. The
port is included, so that a foreign process cannot pass on the proof of another bridge.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable

_LABEL = "mcp-tools.nvim health proof 1"
_LSP_LABEL = b"mcp-tools.nvim language servers 1"


def prove(token: str, port: int, nonce: str) -> str:
    """Returns the proof of a process that serves `port` and knows `token`."""
    return hmac.new(token.encode(), f"{_LABEL}\0{port}\0{nonce}".encode(), "sha256").hexdigest()


def proves(proof: str, port: int, nonce: str, tokens: Iterable[str]) -> bool:
    """Whether `proof` shows that the process at `port` knows one of `tokens`."""
    given = proof.encode("utf-8", "replace")
    return any(hmac.compare_digest(prove(token, port, nonce).encode(), given) for token in tokens)


def lsp_token(token: str) -> str:
    """Returns the token of `mcp-tools lsp`, with which a client can only ask language servers."""
    return hmac.new(_LSP_LABEL, token.encode(), "sha256").hexdigest()
