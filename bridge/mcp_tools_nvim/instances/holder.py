"""Finds out whether a port is held by another Neovim of this user or by a foreign process."""

from __future__ import annotations

import asyncio
import secrets
from typing import Literal

from .files import read_all, table_of
from .proof import proves

ANSWER_WITHIN = 1.0
"""Seconds for the holder's proof; a starting bridge needs a third of a second."""
ANSWER_MAX = 64 * 1024


async def holder_of(
    host: str, port: int, directory: str | None, own_token: str
) -> Literal["ours", "foreign"]:
    """Returns which kind of process listens on `port`.

    Args:
        host: address of the port.
        port: the port.
        directory: directory of instance files.
        own_token: token of this project; a starting Neovim of the same project has no instance file yet.
    """
    tokens = [own_token, *(i.token for i in read_all(directory) if i.port == port)]
    nonce = secrets.token_hex(16)
    proof = await ask_proof(host, port, nonce)
    return "ours" if proof is not None and proves(proof, port, nonce, tokens) else "foreign"


async def ask_proof(host: str, port: int, nonce: str) -> str | None:
    """Returns the proof of the process at a port for `nonce`; None if it is not a bridge."""
    try:
        async with asyncio.timeout(ANSWER_WITHIN):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                name = f"[{host}]" if ":" in host else host
                request = (
                    f"GET /health?nonce={nonce} HTTP/1.1\r\nHost: {name}:{port}\r\nConnection: close\r\n\r\n"
                )
                writer.write(request.encode())
                answer = await _read_to_end(reader)
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return None
    head, _, body = answer.partition(b"\r\n\r\n")
    if b" 200 " not in head.partition(b"\r\n")[0]:
        return None
    proof = table_of(body).get("proof")
    return proof if isinstance(proof, str) else None


async def _read_to_end(reader: asyncio.StreamReader) -> bytes:
    """Returns the answer, or its first ANSWER_MAX bytes."""
    try:
        return await reader.readexactly(ANSWER_MAX)
    except asyncio.IncompleteReadError as end:
        return end.partial
