"""Claims a port at start-up; if the wanted one is taken, claims it later, when it is free."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from ..errors import StartError

NEIGHBORS = 32
"""Number of ports after the wanted one that are tried before any free one."""
RETRY_EVERY = 2.0
"""Seconds between attempts to get the wanted port; the documented maximum is 5 s."""
BACKLOG = 128


@dataclass(frozen=True, slots=True)
class Claim:
    """A claimed port."""

    socket: socket.socket
    port: int
    taken: bool
    """Another process holds the wanted port."""


def listen(host: str, port: int) -> socket.socket:
    """Returns a listening socket: a port that is only bound can be bound by others, too.

    Raises:
        OSError: from `bind` or `listen`.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setblocking(False)
        sock.bind((host, port))
        sock.listen(BACKLOG)
    except OSError:
        sock.close()
        raise
    return sock


def claim(host: str, port: int, fallback: bool) -> Claim:
    """Claims the wanted port; with `fallback` the next free one, if it is taken.

    Raises:
        StartError: no port can be claimed; the message names MCP_PORT.
    """
    try:
        return _claimed(listen(host, port), False)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise StartError(
                f"cannot listen on {host}:{port} ({error.strerror}): set MCP_PORT to another port, or to 0"
            ) from error
    if not fallback:
        raise StartError(f"port {port} is taken: set MCP_PORT to another one, or to 0 for any free port")
    for candidate in [*range(port + 1, min(port + NEIGHBORS, 65535) + 1), 0]:
        try:
            return _claimed(listen(host, candidate), True)
        except OSError:
            continue  # taken or forbidden
    raise StartError(f"no free port after {port}: set MCP_PORT to another one, or to 0 for any free port")


async def await_port(host: str, port: int, held: Callable[[], Awaitable[None]]) -> socket.socket:
    """Waits until `port` is free and claims it; awaits `held` after each failed attempt."""
    while True:
        await asyncio.sleep(RETRY_EVERY)
        try:
            return listen(host, port)
        except OSError:
            await held()


def _claimed(sock: socket.socket, taken: bool) -> Claim:
    return Claim(sock, int(sock.getsockname()[1]), taken)
