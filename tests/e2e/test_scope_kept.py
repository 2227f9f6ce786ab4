"""The scope of a session outlives the process that sealed it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tests.support.bridge import Bridge
from tests.support.raw import Raw


@pytest.mark.slow
async def test_a_scope_survives_the_bridge(start_bridge: Callable[..., Awaitable[Bridge]]) -> None:
    """A session goes on with another process, and sees no more than before."""
    bridge = await start_bridge(setup="{ tools = { 'test', 'buffer' } }")
    async with Raw(bridge) as client:
        await client.initialize(query="?tools=test_echo")
        before = await bridge.pid()
        await bridge.nvim.lua("vim.cmd('McpTools restart')")
        await bridge.nvim.wait_for("return mcp_tools.endpoint() and mcp_tools.status().pid ~= ...", before)
        _, answer = await client.send(client.message("tools/list"))
        assert [tool["name"] for tool in answer["result"]["tools"]] == ["nvim_test_echo"]
        _, answer = await client.send(client.call_message("buffer_list"))
        assert answer["error"]["code"] == -32602
