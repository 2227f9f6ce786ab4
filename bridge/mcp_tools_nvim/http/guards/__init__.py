"""Who may speak, and how much. Guards see a request after its headers and before its body.

A guard is a class with one method; the list of them, in order, stands in `app.py`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol

from aiohttp import web

from ... import jsonrpc

MAX_PORT = 65535


class Guard(Protocol):
    """Looks at the head of a request."""

    def refuse(self, request: web.Request) -> web.Response | None:
        """The answer to a request that must not go on, or None."""


def refusal(
    status: int,
    message: str,
    request: jsonrpc.RequestId | None = None,
    *,
    code: int = jsonrpc.INVALID_REQUEST,
    **headers: str,
) -> web.Response:
    """An answer that refuses a request, by its id where that is known; header names have `_` for `-`."""
    return web.Response(
        status=status,
        body=jsonrpc.dumps(jsonrpc.error(request, code, message)),
        content_type="application/json",
        headers={name.replace("_", "-"): value for name, value in headers.items()},
    )


@lru_cache(maxsize=64)
def names_loopback(host: str) -> bool:
    """Whether a lower-case host, with or without a port, is this machine by name."""
    return _without_port(host) in ("127.0.0.1", "localhost", "[::1]")


def port_of(host: str) -> int | None:
    """The port of `host:port`, or None."""
    bare = _without_port(host)
    port = host[len(bare) + 1 :]
    return int(port) if _is_port(port) else None


def _without_port(host: str) -> str:
    if host.startswith("["):
        end = host.find("]") + 1
        return (
            host[:end]
            if end == len(host) or (host[end : end + 1] == ":" and _is_port(host[end + 1 :]))
            else ""
        )
    name, colon, port = host.partition(":")
    return name if not colon or _is_port(port) else ""


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 5 and 1 <= int(text) <= MAX_PORT
