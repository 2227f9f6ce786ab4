"""Somebody goes while a client is asked for approval: the bridge, or the client without a word."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable

import aiohttp
import pytest

from tests.support.bridge import Bridge, ready, with_limits
from tests.support.raw import Raw, within

pytestmark = pytest.mark.slow

SETUP = with_limits("{ approval = { ask_in = 'client' } }", orphan_grace=1000)
OPEN = "return #require('mcp-tools.approval').list()"
OVER = (
    "return #require('mcp-tools.approval').list() == 0 and require('mcp-tools.registry').pending_count() == 0"
)


@pytest.fixture
async def bridge(start_bridge: Callable[..., Awaitable[Bridge]]) -> Bridge:
    """A bridge whose editor asks by the client."""
    return await start_bridge(SETUP)


@pytest.fixture
async def raw(bridge: Bridge) -> AsyncIterator[Raw]:
    """A client that says that it can ask, and never answers."""
    async with Raw(bridge) as client:
        await client.initialize(capabilities={"elicitation": {}})
        yield client


async def asked(bridge: Bridge, raw: Raw) -> asyncio.Task[object]:
    """A call that waits for the client's answer."""
    call: asyncio.Task[object] = asyncio.create_task(raw.call("risky"))
    await bridge.nvim.wait_for(f"{OPEN} == 1")
    return call


async def test_the_bridge_dies(bridge: Bridge, raw: Raw) -> None:
    """The question goes with it, nothing runs; with the next one the same session is asked anew."""
    call = await asked(bridge, raw)
    old = await bridge.pid()
    os.kill(old, signal.SIGKILL)
    with pytest.raises(aiohttp.ClientError):
        await within(1, call)
    await bridge.nvim.wait_for(OVER)
    await bridge.nvim.wait_for("return mcp_tools.status().pid ~= ...", old, timeout=15_000)
    await ready(bridge.nvim)

    call = await asked(bridge, raw)
    assert await bridge.nvim.lua("return Seen.late") == 0
    call.cancel()
    await bridge.nvim.wait_for(OVER)


async def test_the_client_goes(bridge: Bridge, raw: Raw) -> None:
    """Who is silent and without a connection for the grace is asked no longer."""
    call = await asked(bridge, raw)
    call.cancel()
    await bridge.nvim.wait_for(OVER)
    assert await bridge.nvim.lua("return Seen.late") == 0


async def test_the_connection_of_the_call_goes(bridge: Bridge) -> None:
    """Nobody could have the answer any more: the question is closed, though its client goes on speaking."""
    await bridge.nvim.lua("mcp_tools.setup({ approval = { ask_in = 'editor' } })")
    await bridge.nvim.attach_ui()
    async with Raw(bridge) as client:
        await client.initialize()
        call = asyncio.create_task(client.call("risky"))
        await bridge.nvim.wait_for(f"{OPEN} == 1")
        call.cancel()
        assert (await client.send(client.message("ping")))[0] == 200
        await bridge.nvim.wait_for(OVER)

        call = asyncio.create_task(client.call("risky"))
        await bridge.nvim.wait_for(f"{OPEN} == 1")
        await asyncio.sleep(0.6)  # the connection is looked after twice in that time, and stands
        await bridge.nvim.lua(
            "require('mcp-tools.approval').answer(require('mcp-tools.approval').list()[1].id, 'once')"
        )
        assert (await within(5, call))["content"][0]["text"] == "it ran"
    assert await bridge.nvim.lua("return Seen.late") == 1
