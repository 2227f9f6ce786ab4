"""What `acp_server()` returns, used as an agent of the Agent Client Protocol does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.support.bridge import Bridge
from tests.support.results import text_of

ENTRY = "return mcp_tools.acp_server({ transport = ... })"


@pytest.mark.slow
async def test_stdio(start_bridge: Callable[..., Awaitable[Bridge]], tmp_path: Path) -> None:
    """Started in a hostile project it serves the tools, and goes on after a restart of the bridge."""
    bridge = await start_bridge()
    await bridge.nvim.lua(
        "mcp_tools.register({ name = 'said', description = 'd', needs_approval = false,"
        " execute = function(ctx) ctx('hello') end })"
    )
    entry = await bridge.nvim.lua(ENTRY, "stdio")
    assert (entry["type"], entry["name"]) == ("stdio", "nvim-tools")
    assert bridge.token not in str(entry)
    env = {each["name"]: each["value"] for each in entry["env"]}
    trap = f"open({str(tmp_path / 'ran')!r}, 'w')\n"
    for name in (
        "json.py",
        "bridge/__init__.py",
        "bridge/mcp_tools_nvim/relay/__main__.py",
        "bridge/mcp_tools_nvim/cli/__init__.py",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(trap)
    server = StdioServerParameters(command=entry["command"], args=entry["args"], env=env, cwd=tmp_path)
    async with Client(stdio_client(server), mode="legacy") as client:
        assert "nvim_said" in {tool.name for tool in (await client.list_tools()).tools}
        assert text_of(await client.call_tool("nvim_said")) == "hello"
        await bridge.nvim.request("nvim_command", "McpTools restart")
        await bridge.nvim.wait_for("return require('mcp-tools').status().state ~= 'ready'")
        await bridge.nvim.wait_for("return mcp_tools.endpoint()", timeout=15_000)
        assert text_of(await client.call_tool("nvim_said")) == "hello"
    assert not (tmp_path / "ran").exists()


async def test_http(start_bridge: Callable[..., Awaitable[Bridge]]) -> None:
    """Over HTTP it is the endpoint and the header."""
    bridge = await start_bridge()
    assert await bridge.nvim.lua(ENTRY, "http") == {
        "type": "http",
        "name": "nvim-tools",
        "url": f"{bridge.url}/mcp",
        "headers": [{"name": "Authorization", "value": f"Bearer {bridge.token}"}],
    }
