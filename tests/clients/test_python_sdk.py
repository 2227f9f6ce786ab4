"""The client of the official Python SDK, in every way to choose an era; tests/e2e has the rest."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import mcp_types as types
import pytest
from mcp import Client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from tests.support.bridge import Bridge, closing_quietly
from tests.support.http import http_client

pytestmark = pytest.mark.asyncio(loop_scope="session")

SESSIONS, STATELESS = "2025-11-25", "2026-07-28"
# Transport, mode, what it then speaks.
WAYS = [
    ("http", "legacy", SESSIONS),
    ("http", "auto", STATELESS),
    ("http", STATELESS, STATELESS),
    ("sse", "legacy", SESSIONS),
]
PATIENCE = 5  # seconds


@contextlib.asynccontextmanager
async def connected(bridge: Bridge, transport: str, mode: str, **options: Any) -> AsyncIterator[Client]:
    """A client in a mode."""
    async with contextlib.AsyncExitStack() as stack:
        if transport == "sse":
            source = sse_client(f"{bridge.url}/sse", bridge.headers, httpx_client_factory=http_client)
        else:
            http = http_client(bridge.headers)
            await stack.enter_async_context(http)
            source = streamable_http_client(f"{bridge.url}/mcp", http_client=http)
        closing = stack.enter_context(closing_quietly())
        async with Client(source, mode=mode, **options) as client:
            yield client
            closing.set()


async def register(bridge: Bridge, name: str) -> None:
    """Offer one more tool, as a plugin would that is loaded later."""
    await bridge.nvim.lua(
        """
        local name = ...
        mcp_tools.register({ name = name, description = name, execute = function(ctx) ctx('') end })
        """,
        name,
    )


@pytest.mark.parametrize(("transport", "mode", "protocol"), WAYS)
async def test_negotiates_and_calls(bridge: Bridge, transport: str, mode: str, protocol: str) -> None:
    """It agrees on a version, lists, calls, and gets progress."""
    steps: list[float] = []

    async def on_progress(done: float, total: float | None, message: str | None) -> None:
        steps.append(done)

    async with connected(bridge, transport, mode) as client:
        assert client.protocol_version == protocol
        assert "nvim_count" in [tool.name for tool in (await client.list_tools()).tools]
        result = await client.call_tool("nvim_count", {"steps": 2}, progress_callback=on_progress)
    assert result.content == [types.TextContent(text="counted")]
    assert steps == [1, 2]


@pytest.mark.parametrize(("transport", "mode", "protocol"), WAYS)
async def test_hears_of_new_tools(bridge: Bridge, transport: str, mode: str, protocol: str) -> None:
    """A tool that is registered while it is connected is announced, and is then in the list."""
    received = asyncio.Event()
    late = f"python_{transport}_{mode.replace('-', '_')}"

    async def on_message(message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            received.set()

    async with connected(bridge, transport, mode, message_handler=on_message) as client:
        await client.list_tools()
        try:
            async with asyncio.timeout(PATIENCE):
                if protocol == STATELESS:
                    async with client.listen(tools_list_changed=True) as changes:
                        await register(bridge, late)
                        await anext(aiter(changes))
                else:
                    await register(bridge, late)
                    await received.wait()
            assert f"nvim_{late}" in [tool.name for tool in (await client.list_tools()).tools]
        finally:
            await bridge.nvim.lua("mcp_tools.unregister(...)", late)
