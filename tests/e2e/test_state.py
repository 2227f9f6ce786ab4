"""What a tool keeps for a session of a client."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tests.support.bridge import Bridge
from tests.support.raw import Raw, text_of

COUNT = """
mcp_tools.register({
  name = 'count_calls', description = 'x', annotations = { read_only = true },
  state = function() return { n = 0 } end,
  execute = function(ctx) ctx.state.n = ctx.state.n + 1 ctx(ctx.state.n) end,
})
"""


@pytest.mark.slow
async def test_state_is_one_per_session(start_bridge: Callable[..., Awaitable[Bridge]]) -> None:
    """Two sessions count for themselves, calls without one begin anew, and a revived session goes on."""
    bridge = await start_bridge(init=COUNT)
    async with Raw(bridge) as one, Raw(bridge) as two:
        await one.initialize()
        await two.initialize()

        async def count(client: Raw) -> str:
            return text_of(await client.call("count_calls"))

        assert [await count(client) for client in (one, one, two, one)] == ["1", "2", "1", "3"]
        assert [text_of(await one.stateless("count_calls")) for _ in range(2)] == ["1", "1"]
        pid = await bridge.pid()
        await bridge.nvim.lua("vim.cmd('McpTools restart')")
        await bridge.nvim.wait_for("return mcp_tools.endpoint() and mcp_tools.status().pid ~= ...", pid)
        assert [await count(one), await count(two)] == ["4", "2"]
        await bridge.nvim.lua(COUNT)
        assert await count(one) == "1"
