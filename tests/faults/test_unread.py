"""Large answers that no client reads: the bridge's memory is bounded, and the editor stays responsive."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.support.bridge import Bridge
from tests.support.raw import Raw, text_of
from tests.support.shared import health, memory_of
from tests.support.tcp import request

pytestmark = pytest.mark.asyncio(loop_scope="session")

CLIENTS = 40
MIB = 1024 * 1024

WATCH = """
local n = 0
mcp_tools.register({ name = 'large', description = 'much',
  annotations = { read_only = true }, args = { bytes = { type = 'integer' }, late = {} },
  execute = function(ctx, args)
    local function answer()
      n = n + 1
      ctx(('x'):rep(args.bytes - 10) .. ('%010d'):format(n))
    end
    if args.late then
      vim.defer_fn(answer, 200)
    else
      answer()
    end
  end })
-- CPU time between two ticks of a timer, in ms; the machine may be busy with other processes.
local function busy()
  local used = vim.uv.getrusage()
  return (used.utime.sec + used.stime.sec) * 1e3 + (used.utime.usec + used.stime.usec) / 1e3
end
_G.watched = { last = busy(), longest = 0, timer = vim.uv.new_timer() }
watched.timer:start(0, 2, function()
  local now = busy()
  watched.longest = math.max(watched.longest, now - watched.last)
  watched.last = now
end)
"""
END = "watched.timer:close() mcp_tools.unregister('large')"


def ask(bridge: Bridge, session: str | None, number: int, size: int, late: bool) -> socket.socket:
    """A client that asks for a large result and does not read it."""
    arguments = {"bytes": size} | ({"late": True} if late else {})
    params = {"name": "nvim_large", "arguments": arguments}
    message = {"jsonrpc": "2.0", "id": 1000 + number, "method": "tools/call", "params": params}
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.connect(("127.0.0.1", bridge.port))
    sock.sendall(request(bridge, json.dumps(message).encode(), f"Mcp-Session-Id: {session}"))
    return sock


@pytest_asyncio.fixture(loop_scope="session")
async def silent(shared: Bridge) -> AsyncIterator[list[socket.socket]]:
    """Clients that the test adds; the bridge has the tool `large` until they are gone."""
    await shared.nvim.lua(WATCH)
    sockets: list[socket.socket] = []
    yield sockets
    for sock in sockets:
        sock.close()
    await settled_calls(shared)
    await shared.nvim.lua(END)


@pytest.mark.slow
@pytest.mark.parametrize("late", [False, True], ids=["at-once", "later"])
@pytest.mark.parametrize("size", [3_900_000, 9 * MIB], ids=["3.9-MB", "9-MiB"])
async def test_unread_answers_use_bounded_memory_and_leave_the_editor_free(
    shared: Bridge, client: Raw, silent: list[socket.socket], size: int, late: bool
) -> None:
    pid = await shared.pid()
    alone = await longest_alone(shared, client, size, late)
    silent += [ask(shared, client.session, n, size, late) for n in range(CLIENTS)]
    most = 0
    for _ in range(400):
        most = max(most, memory_of(pid))
        await asyncio.sleep(0.005)
    assert most < 200 * 1024
    assert await shared.nvim.lua("return watched.longest") < CLIENTS / 2 * alone
    assert len(text_of(await client.call("echo", {"value": "x" * 100_000}))) == 100_000


async def longest_alone(bridge: Bridge, client: Raw, size: int, late: bool) -> float:
    """The longest that the editor works without a pause, in ms, while single answers are sent."""
    for _ in range(3):
        await client.call("large", {"bytes": size} | ({"late": True} if late else {}))
    return await bridge.nvim.lua("local one = watched.longest watched.longest = 0 return one")


async def settled_calls(bridge: Bridge) -> None:
    async with asyncio.timeout(20):
        while (await asyncio.to_thread(health, bridge))["calls"]["in_flight"]:
            await asyncio.sleep(0.05)


@pytest.mark.slow
async def test_waiting_results_are_bounded(shared: Bridge, client: Raw, silent: list[socket.socket]) -> None:
    silent += [ask(shared, client.session, n, 9 * MIB, False) for n in range(CLIENTS)]
    assert str(128 * MIB).encode() in await refusal(silent)


async def refusal(silent: list[socket.socket]) -> bytes:
    """The first answer that says busy; peeks, so that the clients still read nothing."""
    async with asyncio.timeout(20):
        while True:
            for sock in silent:
                with contextlib.suppress(BlockingIOError, ConnectionError):
                    if b"busy" in (answer := sock.recv(1 << 14, socket.MSG_PEEK | socket.MSG_DONTWAIT)):
                        return answer
            await asyncio.sleep(0.05)
