"""Claiming ports with real sockets."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

import pytest

from mcp_tools_nvim.errors import StartError
from mcp_tools_nvim.process.ports import RETRY_EVERY, await_port, claim, listen


def test_a_free_port_is_claimed_and_listens(free_port: Callable[[], int]) -> None:
    """From the claim on, connections are taken in and nobody else gets the port."""
    port = free_port()
    mine = claim("127.0.0.1", port, False)
    assert (mine.port, mine.taken) == (port, False)
    socket.create_connection(("127.0.0.1", port), 1).close()
    with pytest.raises(OSError, match="in use"):
        listen("127.0.0.1", port)
    mine.socket.close()


def test_any_port() -> None:
    """0 gives some free port."""
    mine = claim("127.0.0.1", 0, False)
    assert mine.port > 0
    mine.socket.close()


def test_a_port_that_was_just_closed_is_had_again(free_port: Callable[[], int]) -> None:
    """Connections that linger from the last run do not hold the port."""
    port = free_port()
    first = claim("127.0.0.1", port, False)
    client = socket.create_connection(("127.0.0.1", port), 1)
    first.socket.setblocking(True)
    served, _ = first.socket.accept()
    served.close()
    first.socket.close()
    client.close()
    claim("127.0.0.1", port, False).socket.close()


def test_a_taken_port_without_fallback_names_the_variable(free_port: Callable[[], int]) -> None:
    """The error says MCP_PORT and what to set."""
    held = listen("127.0.0.1", free_port())
    with pytest.raises(StartError, match=r"taken: set MCP_PORT to"):
        claim("127.0.0.1", held.getsockname()[1], False)
    held.close()


def test_the_next_free_port_is_used(free_port: Callable[[], int]) -> None:
    """With fallback a neighbour is taken, and the claim says that the wanted one is held."""
    held = listen("127.0.0.1", free_port())
    port = held.getsockname()[1]
    mine = claim("127.0.0.1", port, True)
    assert mine.taken
    assert mine.port != port
    mine.socket.close()
    held.close()


@pytest.mark.slow
async def test_the_wanted_port_is_had_when_it_is_free(free_port: Callable[[], int]) -> None:
    """Within 5 s of its release the port is ours."""
    held = listen("127.0.0.1", free_port())
    port = held.getsockname()[1]
    looked = asyncio.Event()

    async def note() -> None:
        looked.set()

    waiting = asyncio.ensure_future(await_port("127.0.0.1", port, note))
    async with asyncio.timeout(5):
        await looked.wait()
    held.close()
    async with asyncio.timeout(5):
        sock = await waiting
    assert sock.getsockname()[1] == port
    assert RETRY_EVERY <= 4
    sock.close()
