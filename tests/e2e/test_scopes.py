"""Scopes and the catalogue with official clients and a real editor."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from mcp import Client, MCPError
from mcp.types import Implementation

from tests.support.bridge import Bridge, Transport, connect
from tests.support.results import error_of, text_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

THREE = {"tools_call", "tools_describe", "tools_search"}


async def tool_names(client: Client) -> set[str]:
    tools = (await client.list_tools(cache_mode="bypass")).tools
    return {tool.name.removeprefix("nvim_") for tool in tools}


async def setup(bridge: Bridge, options: str) -> None:
    await bridge.nvim.lua(f"mcp_tools.setup({options}) probe.core.get()")


@pytest_asyncio.fixture(loop_scope="module")
async def scoped(tools_bridge: Bridge) -> AsyncIterator[Bridge]:
    """A bridge whose scopes are reset after the test."""
    yield tools_bridge
    await setup(
        tools_bridge, "{ catalogue = 'direct', clients = { ['claude-code'] = {} }, tools = { test = true } }"
    )


async def test_the_url_limits_the_clients_scope(scoped: Bridge, transport: Transport) -> None:
    async with connect(scoped, transport, "?tools=file,test_echo&readonly") as client:
        names = await tool_names(client)
        assert {"file_read", "file_list", "test_echo"} <= names
        assert not {name for name in names if not name.startswith(("file_", "test_echo"))}
        assert text_of(await client.call_tool("nvim_test_echo", {"text": "x"})) == "x"
        for name in ("nvim_test_progress", "nvim_nowhere"):
            with pytest.raises(MCPError) as caught:
                await client.call_tool(name, {})
            assert (caught.value.error.code, caught.value.error.message) == (-32602, f"Unknown tool: {name}")
        assert (await client.list_prompts()).prompts


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("?tools=file,test_echo&readonly", {"file_read"}),
        ("?catalogue=search", {"tools_search"}),
        ("?tools=test_echo", set()),
    ],
)
async def test_the_instructions_name_only_tools_in_scope(
    scoped: Bridge, transport: Transport, query: str, named: set[str]
) -> None:
    async with connect(scoped, transport, query) as client:
        text = client.instructions or ""
        assert "Project: " in text
        assert set(re.findall(r"nvim_(\w+)", text)) == named
        assert named <= await tool_names(client)


async def test_the_option_clients_limits_the_scope_by_name(scoped: Bridge, transport: Transport) -> None:
    info = Implementation(name="claude-code", version="1")
    async with connect(scoped, transport, client_info=info) as client, connect(scoped, transport) as other:
        whole = await tool_names(client)
        await setup(scoped, "{ clients = { ['claude-code'] = { tools = { 'test_echo', 'nowhere' } } } }")
        assert await tool_names(client) == {"test_echo"}
        assert await tool_names(other) == whole
        with pytest.raises(MCPError):
            await client.call_tool("nvim_buffer_list", {})
        await other.call_tool("nvim_buffer_list", {})


async def test_a_client_finds_and_calls_tools_through_search(scoped: Bridge, transport: Transport) -> None:
    seen: list[float] = []

    async def on_progress(done: float, total: float | None, message: str | None) -> None:
        seen.append(done)

    async with connect(scoped, transport, "?catalogue=search") as client:
        assert await tool_names(client) == THREE
        found = text_of(await client.call_tool("nvim_tools_search", {"query": "open buffers"}))
        assert "nvim_buffer_list: " in found
        described = await client.call_tool("nvim_tools_describe", {"names": ["nvim_test_progress"]})
        assert "steps" in json.loads(text_of(described))["tools"][0]["inputSchema"]["properties"]
        call = {"name": "nvim_test_progress", "arguments": {"steps": 3, "delay_ms": 20}}
        result = await client.call_tool("nvim_tools_call", call, progress_callback=on_progress)
        assert json.loads(text_of(result)) == {"steps": 3}
        assert seen
        for call, code in (
            ({"name": "nvim_test_echo", "arguments": {"text": 1}}, "validation_error"),
            ({"name": "nvim_nowhere"}, "not_found"),
        ):
            assert error_of(await client.call_tool("nvim_tools_call", call))["code"] == code


async def test_a_call_through_search_can_be_cancelled(scoped: Bridge) -> None:
    async with connect(scoped, "sessions", "?catalogue=search") as client:
        call = asyncio.create_task(client.call_tool("nvim_tools_call", {"name": "hold"}))
        await scoped.nvim.wait_for("return Seen.running == 1")
        running = "return probe.executor():pending()[1].name"
        assert await scoped.nvim.lua(running) == "hold"
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await scoped.nvim.wait_for("return #Seen.cancelled == 1")
