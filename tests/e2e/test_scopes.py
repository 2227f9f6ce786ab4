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
    """A bridge whose clients see everything again afterwards."""
    yield tools_bridge
    await setup(
        tools_bridge, "{ catalogue = 'direct', clients = { ['claude-code'] = {} }, tools = { test = true } }"
    )


async def test_a_url_narrows(scoped: Bridge, transport: Transport) -> None:
    """The client sees what its URL names; what it does not see is not there."""
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
async def test_the_instructions_name_only_tools_that_the_client_sees(
    scoped: Bridge, transport: Transport, query: str, named: set[str]
) -> None:
    async with connect(scoped, transport, query) as client:
        text = client.instructions or ""
        assert "Project: " in text
        assert set(re.findall(r"nvim_(\w+)", text)) == named
        assert named <= await tool_names(client)


async def test_the_editor_narrows_by_name(scoped: Bridge, transport: Transport) -> None:
    """The option `clients` takes away from what a client of that name sees, also while it is connected."""
    info = Implementation(name="claude-code", version="1")
    async with connect(scoped, transport, client_info=info) as client, connect(scoped, transport) as other:
        whole = await tool_names(client)
        await setup(scoped, "{ clients = { ['claude-code'] = { tools = { 'test_echo', 'nowhere' } } } }")
        assert await tool_names(client) == {"test_echo"}
        assert await tool_names(other) == whole
        with pytest.raises(MCPError):
            await client.call_tool("nvim_buffer_list", {})
        await other.call_tool("nvim_buffer_list", {})


async def test_the_catalogue(scoped: Bridge, transport: Transport) -> None:
    """A client finds, reads of and calls any tool by three; progress and errors are those of the tool."""
    seen: list[float] = []

    async def on_progress(done: float, total: float | None, message: str | None) -> None:
        seen.append(done)

    async with connect(scoped, transport, "?catalogue=search") as client:
        assert await tool_names(client) == THREE
        found = text_of(await client.call_tool("nvim_tools_search", {"query": "open buffers"}))
        assert "nvim_buffer_list: " in found
        described = json.loads(
            text_of(await client.call_tool("nvim_tools_describe", {"names": ["nvim_test_progress"]}))
        )
        assert "steps" in described["tools"][0]["inputSchema"]["properties"]
        call = {"name": "nvim_test_progress", "arguments": {"steps": 3, "delay_ms": 20}}
        result = await client.call_tool("nvim_tools_call", call, progress_callback=on_progress)
        assert json.loads(text_of(result)) == {"steps": 3}
        assert seen
        wrong = await client.call_tool(
            "nvim_tools_call", {"name": "nvim_test_echo", "arguments": {"text": 1}}
        )
        assert error_of(wrong)["code"] == "validation_error"
        beyond = await client.call_tool("nvim_tools_call", {"name": "nvim_nowhere"})
        assert error_of(beyond)["code"] == "not_found"


async def test_a_call_by_the_catalogue_is_cancelled(scoped: Bridge) -> None:
    """There is one call: its cancel reaches the tool, and the audit log has the tool's name."""
    async with connect(scoped, "sessions", "?catalogue=search") as client:
        call = asyncio.create_task(client.call_tool("nvim_tools_call", {"name": "hold"}))
        await scoped.nvim.wait_for("return Seen.running == 1")
        running = "return probe.executor():pending()[1].name"
        assert await scoped.nvim.lua(running) == "hold"
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await scoped.nvim.wait_for("return #Seen.cancelled == 1")
