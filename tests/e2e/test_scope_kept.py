"""The scope of a session outlives the process that sealed it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from mcp import MCPError

from tests.support.bridge import Bridge, connect


@pytest.mark.slow
async def test_a_scope_survives_the_bridge(start_bridge: Callable[..., Awaitable[Bridge]]) -> None:
    """A session goes on with another process, and sees no more than before."""
    bridge = await start_bridge(setup="{ tools = { 'test', 'buffer' } }")
    async with connect(bridge, "sessions", "?tools=test_echo") as client:
        before = await bridge.pid()
        await bridge.nvim.lua("vim.cmd('McpTools restart')")
        await bridge.nvim.wait_for(
            "local pid = mcp_tools.status().pid return pid and pid ~= ... and mcp_tools.endpoint()",
            before,
            timeout=15_000,
        )
        async with asyncio.timeout(10):  # connections to the last process are closed with it at the latest
            while Path(f"/proc/{before}").exists():
                await asyncio.sleep(0.05)
        await asyncio.sleep(0.1)  # until the client has seen that they are
        listed = (await client.list_tools(cache_mode="bypass")).tools
        assert [tool.name for tool in listed] == ["nvim_test_echo"]
        with pytest.raises(MCPError):
            await client.call_tool("nvim_buffer_list", {})
