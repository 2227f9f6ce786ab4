"""The bridge is killed or the client disconnects while the client is asked for approval."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator

import aiohttp
import pytest

from tests.support.bridge import Bridge, Start, wait_restarted, with_limits
from tests.support.raw import Raw, within

pytestmark = pytest.mark.slow

SETUP = with_limits("{ approval = { ask_in = 'client' } }", orphan_grace=1000)
OPEN = "return #require('mcp-tools.approval').list()"
OVER = f"{OPEN} == 0 and require('mcp-tools.registry').pending_count() == 0"


@pytest.fixture
async def bridge(start_bridge: Start) -> Bridge:
    """A bridge whose editor asks by the client."""
    return await start_bridge(SETUP)


@pytest.fixture
async def raw(bridge: Bridge) -> AsyncIterator[Raw]:
    """A client that supports elicitation, and never answers."""
    async with Raw(bridge) as client:
        await client.initialize(capabilities={"elicitation": {}})
        yield client


async def asked(bridge: Bridge, raw: Raw) -> asyncio.Task[object]:
    """A call that waits for the client's answer."""
    call: asyncio.Task[object] = asyncio.create_task(raw.call("risky"))
    await bridge.nvim.wait_for(f"{OPEN} == 1")
    return call


async def test_after_a_crash_nothing_runs_and_the_session_is_asked_again(bridge: Bridge, raw: Raw) -> None:
    call = await asked(bridge, raw)
    old = await bridge.pid()
    os.kill(old, signal.SIGKILL)
    with pytest.raises(aiohttp.ClientError):
        await within(10, call)
    await bridge.nvim.wait_for(OVER)
    await wait_restarted(bridge, old)
    call = await asked(bridge, raw)
    assert await bridge.nvim.lua("return Seen.late") == 0
    call.cancel()
    await bridge.nvim.wait_for(OVER)


async def test_a_disconnected_client_is_not_asked_after_the_grace_period(bridge: Bridge, raw: Raw) -> None:
    call = await asked(bridge, raw)
    call.cancel()
    await bridge.nvim.wait_for(OVER)
    assert await bridge.nvim.lua("return Seen.late") == 0


async def test_the_question_closes_with_the_connection_of_its_call(bridge: Bridge) -> None:
    """The client could not receive the result, although its session continues."""
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
        await asyncio.sleep(0.6)  # the connection is checked twice in that time
        await bridge.nvim.lua("probe.approval.answer(probe.approval.list()[1].id, 'once')")
        assert (await within(10, call))["content"][0]["text"] == "it ran"
    assert await bridge.nvim.lua("return Seen.late") == 1
