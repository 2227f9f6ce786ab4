"""Claiming ports with real sockets."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

import pytest

from mcp_tools_nvim.process.ports import RETRY_EVERY, await_port, claim, listen


def test_a_claimed_port_listens_at_once(free_port: Callable[[], int]) -> None:
    port = free_port()
    mine = claim("127.0.0.1", port, False)
    assert (mine.port, mine.taken) == (port, False)
    socket.create_connection(("127.0.0.1", port), 1).close()
    with pytest.raises(OSError, match="in use"):
        listen("127.0.0.1", port)
    mine.socket.close()


def test_port_0_claims_a_free_port() -> None:
    mine = claim("127.0.0.1", 0, False)
    assert mine.port > 0
    mine.socket.close()


def test_a_port_that_was_just_closed_can_be_claimed(free_port: Callable[[], int]) -> None:
    port = free_port()
    first = claim("127.0.0.1", port, False)
    client = socket.create_connection(("127.0.0.1", port), 1)
    first.socket.setblocking(True)
    served, _ = first.socket.accept()
    served.close()
    first.socket.close()
    client.close()
    claim("127.0.0.1", port, False).socket.close()


def test_with_fallback_another_free_port_is_claimed(free_port: Callable[[], int]) -> None:
    held = listen("127.0.0.1", free_port())
    port = held.getsockname()[1]
    mine = claim("127.0.0.1", port, True)
    assert mine.taken
    assert mine.port != port
    mine.socket.close()
    held.close()


@pytest.mark.slow
async def test_the_wanted_port_is_claimed_within_seconds_of_its_release(free_port: Callable[[], int]) -> None:
    held = listen("127.0.0.1", free_port())
    port = held.getsockname()[1]
    checked = asyncio.Event()

    async def note() -> None:
        checked.set()

    waiting = asyncio.ensure_future(await_port("127.0.0.1", port, note))
    async with asyncio.timeout(10):
        await checked.wait()
    held.close()
    async with asyncio.timeout(10):
        sock = await waiting
    assert sock.getsockname()[1] == port
    assert RETRY_EVERY <= 4
    sock.close()
