"""Groups of tools, and tools of plugins: connected clients are notified of every change."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from mcp import Client, MCPError

from tests.support.bridge import Bridge, Transport
from tests.support.news import News, follow
from tests.support.results import error_of, text_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

Plugin = Callable[[str, str | None], Path]

REFRESH = "_G.Failures = nil mcp_tools.refresh(nil, function(failures) _G.Failures = failures end)"


async def tool_names(client: Client) -> set[str]:
    return {tool.name.removeprefix("nvim_") for tool in (await client.list_tools(cache_mode="bypass")).tools}


@contextlib.asynccontextmanager
async def listening(
    bridge: Bridge, transport: Transport, uris: Sequence[str] = ()
) -> AsyncIterator[tuple[Client, News]]:
    """A client that gets notifications from now on."""
    async with follow(bridge, transport, uris) as (client, news):
        await tool_names(client)
        yield client, news


async def received(news: News, kind: str, bridge: Bridge, lua: str, *args: Any) -> None:
    """Runs Lua, and waits until the client is notified of the change."""
    news.seen.clear()
    await bridge.nvim.lua(lua, *args)
    await news.wait_for(kind)


@pytest_asyncio.fixture(loop_scope="module")
async def switched(tools_bridge: Bridge) -> AsyncIterator[Bridge]:
    """A bridge whose options are restored after the test."""
    yield tools_bridge
    await tools_bridge.nvim.lua(
        """
        local config = probe.config
        local bridge = config.get('bridge')
        config.reset()
        mcp_tools.setup({ bridge = { python = bridge.python }, tools = { 'test', 'buffer' } })
        probe.core.get()
        """
    )


@pytest.mark.slow
async def test_a_group_is_disabled_and_enabled(switched: Bridge, transport: Transport) -> None:
    async with listening(switched, transport) as (client, news):
        assert {"buffer_list", "buffer_close"} <= await tool_names(client)
        await received(news, "tools", switched, "mcp_tools.disable('buffer')")
        assert not {"buffer_list", "buffer_close"} & await tool_names(client)
        with pytest.raises(MCPError) as caught:
            await client.call_tool("nvim_buffer_list", {})
        assert caught.value.error.code == -32602
        await received(news, "tools", switched, "mcp_tools.enable('buffer_close')")
        assert {"buffer_list", "buffer_close"} & await tool_names(client) == {"buffer_close"}
        await received(news, "tools", switched, "vim.cmd('McpTools tools enable buffer')")
        assert {"buffer_list", "buffer_close"} <= await tool_names(client)


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    """Writes or removes a file of a plugin outside of the project: `plugin(name, text)`."""
    directory = tmp_path / "plugin" / "lua" / "mcp-tools" / "ext"
    directory.mkdir(parents=True)
    times = itertools.count(1_000)

    def write(name: str, text: str | None) -> Path:
        path = directory / f"{name}.lua"
        if text is None:
            path.unlink()
        else:
            path.write_text(text)
            os.utime(path, (now := next(times), now))  # two writes never have the same time
        return tmp_path / "plugin"

    return write


def tool(name: str, text: str = "x") -> str:
    return (
        f"{{ name = '{name}', description = '{text}', annotations = {{ read_only = true }},"
        f" execute = function(ctx) ctx('{text}') end }}"
    )


async def test_tools_follow_a_plugins_files(switched: Bridge, transport: Transport, plugin: Plugin) -> None:
    plugin("one", f"return {tool('shipped', 'first')}")
    plugin("broken", "return {")
    root = plugin("more", f"return {{ {tool('more_a')}, {tool('more_b')}, {{ name = 'more_c' }} }}")
    async with listening(switched, transport) as (client, news):
        await received(news, "tools", switched, "vim.opt.runtimepath:append(...) " + REFRESH, str(root))
        try:
            assert {"shipped", "more_a", "more_b"} <= await tool_names(client)
            assert "more_c" not in await tool_names(client)
            answer = await client.call_tool("nvim_shipped", {})
            assert answer.content[0].text == "first"

            plugin("one", f"return {tool('shipped', 'second')}")
            await received(news, "tools", switched, REFRESH)
            assert (await client.call_tool("nvim_shipped", {})).content[0].text == "second"
            plugin("more", None)
            plugin("broken", f"return {tool('fixed')}")
            await received(news, "tools", switched, REFRESH)
            names = await tool_names(client)
            assert {"shipped", "fixed"} <= names
            assert not {"more_a", "more_b"} & names
            assert await switched.nvim.lua("return #Failures") == 0
        finally:
            await switched.nvim.lua("vim.opt.runtimepath:remove(...) " + REFRESH, str(root))
        assert "shipped" not in await tool_names(client)


async def test_new_files_of_a_plugin_are_found_at_a_call(
    switched: Bridge, transport: Transport, plugin: Plugin
) -> None:
    root = plugin("one", f"return {tool('first')}")
    await switched.nvim.lua(
        "vim.opt.runtimepath:append(...) vim.env.MCP_TOOLS_CACHE_TTL = '0' " + REFRESH, str(root)
    )
    try:
        async with listening(switched, transport) as (client, news):
            assert "first" in await tool_names(client)
            plugin("two", f"return {tool('second', 'found')}")
            news.seen.clear()
            await client.call_tool("nvim_first", {})
            await news.wait_for("tools")
            assert text_of(await client.call_tool("nvim_second", {})) == "found"
    finally:
        await switched.nvim.lua(
            "vim.opt.runtimepath:remove(...) vim.env.MCP_TOOLS_CACHE_TTL = nil " + REFRESH, str(root)
        )


async def test_bridge_refresh_finds_new_tools(switched: Bridge, transport: Transport, plugin: Plugin) -> None:
    root = plugin("one", f"return {tool('shipped')}")
    await switched.nvim.lua("vim.opt.runtimepath:append(...) mcp_tools.enable('bridge_refresh')", str(root))
    try:
        async with listening(switched, transport) as (client, news):
            refused = await client.call_tool("nvim_bridge_refresh", {"source": "ext"})
            assert error_of(refused)["code"] == "access_denied"
            assert "shipped" not in await tool_names(client)
            news.seen.clear()
            await switched.nvim.lua(
                "mcp_tools.setup({ approval = { tools = { bridge_refresh = 'allow' } } })"
            )
            answer = text_of(await client.call_tool("nvim_bridge_refresh", {"source": "ext"}))
            assert answer.startswith("ext: 1 file, 0 failed\n")
            assert answer.endswith(": shipped")
            await news.wait_for("tools")
            assert "shipped" in await tool_names(client)
    finally:
        await switched.nvim.lua("vim.opt.runtimepath:remove(...) " + REFRESH, str(root))
