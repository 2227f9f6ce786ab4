"""Who holds a port: another editor of this user, or a stranger. Never tells anyone a token to find out.

Receives a port and the folder of instance files; asks the holder for a proof that only a bridge can give.
Does not know about: what follows from the answer.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import os
import secrets
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from .proof import prove

ANSWER_WITHIN = 1.0
"""Seconds for the holder's proof; a bridge that is just starting needs a third of one."""
ANSWER_MAX = 64 * 1024


@dataclass(frozen=True, slots=True)
class Instance:
    """One editor with a bridge, from its instance file."""

    pid: int
    port: int
    token: str = field(repr=False)
    root: str = ""
    cwd: str = ""
    socket: str = ""
    url: str = ""
    boot: str = ""
    focused_at: float = 0.0


def own_folders(environ: Mapping[str, str]) -> list[str]:
    """Where this user's editors note themselves, as lua/mcp-tools/bridge/instances.lua has it.

    An editor has one place; one that was started elsewhere (by a service, say) may have the other.
    """
    runtime = environ.get("XDG_RUNTIME_DIR")
    folders = [str(Path(runtime) / "mcp-tools")] if runtime and _private(Path(runtime)) else []
    name = environ.get("NVIM_APPNAME") or "nvim"
    if os.name == "nt":
        state = Path(environ.get("XDG_STATE_HOME") or environ.get("LOCALAPPDATA") or "~/AppData/Local")
        name += "-data"
    else:
        state = Path(environ.get("XDG_STATE_HOME") or "~/.local/state")
    return [*folders, os.path.expanduser(state / name / "mcp-tools" / "instances")]


def read_all(folder: str | None) -> list[Instance]:
    """All instances named in `folder`; files that others could have written are left out."""
    if not folder or not _private(Path(folder)):
        return []
    found = [_read(path) for path in sorted(Path(folder).glob("*.json")) if _private(path)]
    return [instance for instance in found if instance is not None]


async def holder_of(host: str, port: int, folder: str | None, own_token: str) -> Literal["ours", "stranger"]:
    """Tells who listens on `port`.

    Args:
        host: where.
        port: the port that is taken.
        folder: of instance files.
        own_token: of this project; an editor of the same project that is just starting has no file yet.
    """
    tokens = [own_token, *(i.token for i in read_all(folder) if i.port == port)]
    nonce = secrets.token_hex(16)
    proof = await ask_proof(host, port, nonce)
    return "ours" if proof is not None and proves(proof, port, nonce, tokens) else "stranger"


def proves(proof: str, port: int, nonce: str, tokens: Iterable[str]) -> bool:
    """Tells whether `proof` shows that who serves `port` knows one of `tokens`."""
    given = proof.encode("utf-8", "replace")
    return any(hmac.compare_digest(prove(token, port, nonce).encode(), given) for token in tokens)


async def ask_proof(host: str, port: int, nonce: str) -> str | None:
    """The `proof` that whoever listens there gives for `nonce`; None = no bridge."""
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
    values = _table(body)
    proof = values.get("proof")
    return proof if isinstance(proof, str) else None


async def _read_to_end(reader: asyncio.StreamReader) -> bytes:
    answer = b""
    while len(answer) <= ANSWER_MAX:
        part = await reader.read(ANSWER_MAX)
        if not part:
            break
        answer += part
    return answer


def _private(path: Path) -> bool:
    """Ours alone: owned by this user and not writable by others."""
    try:
        about = path.stat(follow_symlinks=False)
    except OSError:
        return False
    if os.name == "nt":
        return True
    return about.st_uid == os.getuid() and not about.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _read(path: Path) -> Instance | None:
    try:
        values = _table(path.read_bytes())
    except OSError:
        return None
    pid, port, token = values.get("pid"), values.get("port"), values.get("token")
    if not isinstance(pid, int) or not isinstance(port, int) or not isinstance(token, str) or not token:
        return None
    texts = {k: v for k in ("root", "cwd", "socket", "url", "boot") if isinstance(v := values.get(k), str)}
    focused = values.get("focused_at")
    return Instance(
        pid, port, token, focused_at=focused if isinstance(focused, int | float) else 0.0, **texts
    )


def _table(data: bytes) -> dict[str, Any]:
    try:
        values = json.loads(data)
    except ValueError:
        return {}  # half written or foreign
    return values if isinstance(values, dict) else {}
