"""A person at the editor is asked; what they say counts, also when the call is over before they say it."""

from __future__ import annotations

import asyncio

import pytest
import pytest_asyncio

from tests.support.bridge import ROOT_TOOLS, Bridge, connect
from tests.support.results import error_of, text_of

pytestmark = pytest.mark.asyncio(loop_scope="session")

# A UI of the person's own choice: vim.ui.select is made to be replaced. It answers when the test says so.
SELECT = (
    ROOT_TOOLS
    + """
_G.Asked = {}
vim.ui.select = function(items, opts, on_choice)
  table.insert(Asked, { items = items, prompt = opts.prompt })
  Asked.answer = function(index) on_choice(items[index], index) end
end
mcp_tools.setup({ approval = { timeout = 20000 }, ui = { approval = 'select' } })
probe.approval.MAX_OPEN = 2
local gateway = probe.gateway()
gateway.grants:reset()
gateway.ledger:reset(gateway:project())
"""
)


async def asked(bridge: Bridge, count: int = 1) -> None:
    await bridge.nvim.wait_for(f"return #Asked >= {count}")


@pytest_asyncio.fixture(loop_scope="session")
async def bridge(attended_bridge: Bridge) -> Bridge:
    """A bridge whose editor has a screen and a person who was not asked yet."""
    await attended_bridge.nvim.wait_for("return require('mcp-tools.registry').pending_count() == 0")
    await attended_bridge.nvim.lua(SELECT)
    return attended_bridge


async def test_yes_and_no(bridge: Bridge) -> None:
    """The tool runs after a yes and not after a no; the question names client, tool and reason."""
    async with connect(bridge, "sessions") as client:
        call = asyncio.create_task(client.call_tool("nvim_risky", {"path": "x\x07y"}))
        await asked(bridge)
        assert await bridge.nvim.lua("return Seen.late") == 0
        prompt = await bridge.nvim.lua("return Asked[1].prompt")
        await bridge.nvim.lua("Asked.answer(1)")
        assert text_of(await call) == "it ran"
        assert "risky" in prompt
        assert "destroy" in prompt
        assert "calls itself" in prompt
        assert "\x07" not in prompt

        call = asyncio.create_task(client.call_tool("nvim_risky", {}))
        await asked(bridge, 2)
        await bridge.nvim.lua("Asked.answer(2)")
        assert error_of(await call)["code"] == "access_denied"
        assert await bridge.nvim.lua("return Seen.late") == 1


async def test_the_call_ends_first(bridge: Bridge) -> None:
    """A yes to a call that was cancelled meanwhile runs nothing."""
    async with connect(bridge, "sessions") as client:
        call = asyncio.create_task(client.call_tool("nvim_risky", {}))
        await asked(bridge)
        call.cancel()
        await bridge.nvim.wait_for("return require('mcp-tools.registry').pending_count() == 0")
        await bridge.nvim.lua("Asked.answer(1)")

        assert await bridge.nvim.lua("return Seen.late") == 0


@pytest.mark.slow
async def test_nobody_answers(bridge: Bridge) -> None:
    """No answer in `approval.timeout` is a no, and a late yes runs nothing."""
    await bridge.nvim.lua("mcp_tools.setup({ approval = { timeout = 1000 } })")
    async with connect(bridge, "sessions") as client:
        error = error_of(await client.call_tool("nvim_risky", {}))
        await bridge.nvim.lua("Asked.answer(1)")

        assert error["code"] == "access_denied"
        assert "nobody answered" in error["message"]
        assert await bridge.nvim.lua("return Seen.late") == 0


async def test_one_at_a_time_and_not_too_many(bridge: Bridge) -> None:
    """A second question waits for the first; one beyond the limit is busy."""
    async with connect(bridge, "sessions") as client:
        first = asyncio.create_task(client.call_tool("nvim_risky", {}))
        await asked(bridge)
        second = asyncio.create_task(client.call_tool("nvim_risky", {}))
        await bridge.nvim.wait_for("return probe.approval.count() == 2")
        third = error_of(await client.call_tool("nvim_risky", {}))
        assert third["code"] == "busy"
        assert await bridge.nvim.lua("return #Asked") == 1
        await bridge.nvim.lua("Asked.answer(2)")
        assert error_of(await first)["code"] == "access_denied"
        await asked(bridge, 2)
        await bridge.nvim.lua("Asked.answer(1)")
        assert text_of(await second) == "it ran"
