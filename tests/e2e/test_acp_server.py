"""What `acp_server()` returns, used as an agent of the Agent Client Protocol does."""

from __future__ import annotations

from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.support.bridge import Start
from tests.support.results import text_of

ENTRY = "return mcp_tools.acp_server({ transport = ... })"


@pytest.mark.slow
async def test_stdio_serves_the_tools_in_a_hostile_project(start_bridge: Start, tmp_path: Path) -> None:
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
    package = "bridge/mcp_tools_nvim"
    for name in (
        "json.py",
        "bridge/__init__.py",
        f"{package}/relay/__main__.py",
        f"{package}/cli/__init__.py",
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


async def test_http_returns_the_endpoint_and_its_header(start_bridge: Start) -> None:
    bridge = await start_bridge()
    headers = [{"name": "Authorization", "value": f"Bearer {bridge.token}"}]
    expected = {"type": "http", "name": "nvim-tools", "url": f"{bridge.url}/mcp", "headers": headers}
    assert await bridge.nvim.lua(ENTRY, "http") == expected
