"""The registry during calls: tools that are removed and added, results that wait for the bridge."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.support.bridge import ROOT_TOOLS, Bridge
from tests.support.raw import Raw, begun, text_of, within
from tests.support.shared import forgotten

pytestmark = pytest.mark.asyncio(loop_scope="session")

REGISTER = """
mcp_tools.register({
  name = 'passing', description = 'x', annotations = { read_only = true },
  args = { answer = { type = 'string', default = ... }, ms = { type = 'integer', default = 0 } },
  execute = function(ctx, args)
    vim.defer_fn(function() ctx(args.answer) end, args.ms)
  end,
})
"""
PENDING = "return require('mcp-tools.registry').pending_count() == 1"


async def test_a_running_call_survives_the_removal_of_its_tool(shared: Bridge, client: Raw) -> None:
    await shared.nvim.lua(REGISTER, "old")
    call = asyncio.create_task(client.call("passing", {"ms": 300}))
    await shared.nvim.wait_for(PENDING)
    await shared.nvim.lua("mcp_tools.unregister('passing')")
    _, answer = await client.send(client.call_message("passing"))
    assert answer["error"]["code"] == -32602
    assert "nvim_passing" not in await names(client)
    await shared.nvim.lua(REGISTER, "new")
    assert "nvim_passing" in await names(client)
    assert text_of(await client.call("passing")) == "new"
    assert text_of(await within(10, call)) == "old"
    await shared.nvim.lua("mcp_tools.unregister('passing')")


async def names(client: Raw) -> list[str]:
    _, answer = await client.send(client.message("tools/list", {}))
    return [tool["name"] for tool in answer["result"]["tools"]]


async def test_clear_removes_tools_and_clear_pending_cancels_calls(shared: Bridge, client: Raw) -> None:
    await shared.nvim.lua(REGISTER, "kept")
    later = asyncio.create_task(client.call("passing", {"ms": 200}))
    held = asyncio.create_task(client.call("hold"))
    await begun(shared)
    try:
        await shared.nvim.lua("require('mcp-tools.registry').clear()")
        assert await names(client) == []
        assert text_of(await within(10, later)) == "kept"
        await shared.nvim.lua("require('mcp-tools.registry').clear_pending()")
        result = await within(10, held)
        assert result["structuredContent"]["code"] == "cancelled"
        assert await shared.nvim.lua("return Seen.cancelled") == ["user"]
    finally:
        await shared.nvim.lua(TOOLS_AGAIN)


TOOLS_AGAIN = f"local seen = Seen {ROOT_TOOLS} Seen = seen"


async def test_results_are_kept_until_acknowledged(shared: Bridge, client: Raw) -> None:
    for size in (10, 64 * 1024 + 1, 1_000_000):
        assert len(text_of(await client.call("sized", {"bytes": size}))) == size
        assert await kept(shared) in ([0, 0], [1, 0])
        await forgotten(shared)
    async with asyncio.timeout(10):
        await asyncio.gather(*(client.call("later", {"ms": n % 50, "value": n}) for n in range(200)))
    await forgotten(shared)
    hold = asyncio.create_task(client.send(client.call_message("hold")))
    await begun(shared)
    assert await kept(shared) == [1, 1]
    await client.send(None, method="DELETE")
    await hold
    await forgotten(shared)
    assert await kept(shared) == [0, 0]


async def kept(bridge: Bridge) -> Any:
    """Numbers of calls that the registry holds, and that run."""
    return await bridge.nvim.lua(
        "local executor = probe.executor() return { vim.tbl_count(executor.calls), executor.active }"
    )
