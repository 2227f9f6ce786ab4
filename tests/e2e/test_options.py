"""Options that change what a call may do, seen by a client."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from tests.support.bridge import ROOT_TOOLS, Bridge, Transport, connect
from tests.support.results import error_of, text_of


async def test_size_limit(start_bridge: Callable[..., Awaitable[Bridge]], transport: Transport) -> None:
    """A result at the limit passes; one byte more is refused."""
    bridge = await start_bridge(init=ROOT_TOOLS, setup="{ limits = { tool_result = 2000 } }")
    async with connect(bridge, transport) as client:
        assert len(text_of(await client.call_tool("nvim_sized", {"bytes": 2000}))) == 2000
        assert error_of(await client.call_tool("nvim_sized", {"bytes": 2001}))["code"] == "too_large"


async def test_prefix(start_bridge: Callable[..., Awaitable[Bridge]]) -> None:
    """Without a prefix tools are published under their own names."""
    bridge = await start_bridge(init=ROOT_TOOLS, setup="{ tool_prefix = '' }")
    async with connect(bridge, "sessions") as client:
        assert "echo" in {tool.name for tool in (await client.list_tools()).tools}
        assert text_of(await client.call_tool("echo", {"value": "x"})) == "x"
