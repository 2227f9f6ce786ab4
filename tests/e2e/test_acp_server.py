"""What `acp_server()` returns, used as an agent of the Agent Client Protocol does."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from tests.support.bridge import ROOT_TOOLS, Start, http_client
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


@pytest.mark.slow
async def test_an_http_entry_has_a_token_of_its_own_until_it_is_revoked(start_bridge: Start) -> None:
    bridge = await start_bridge(init=ROOT_TOOLS)
    first, second = [await bridge.nvim.lua(ENTRY, "http") for _ in range(2)]
    assert first["url"] == f"{bridge.url}/mcp"
    assert len({bridge.token, *(headers_of(each)["Authorization"][7:] for each in (first, second))}) == 3

    async def tools(entry: dict[str, Any]) -> set[str]:
        async with http_client(headers_of(entry)) as http:
            transport = streamable_http_client(entry["url"], http_client=http)
            async with Client(transport, mode="legacy") as client:
                return {tool.name for tool in (await client.list_tools()).tools}

    async def status(entry: dict[str, Any]) -> int:
        async with http_client(headers_of(entry)) as http:
            body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
            return (await http.post(entry["url"], json=body)).status_code

    assert await tools(first) == await tools(second) != set()
    await bridge.nvim.lua("mcp_tools.acp_revoke(...)", first)
    async with asyncio.timeout(15):
        while await status(first) != 401:
            await asyncio.sleep(0.02)
    await bridge.nvim.request("nvim_command", "McpTools restart")
    await bridge.nvim.wait_for("return require('mcp-tools').status().state ~= 'ready'")
    await bridge.nvim.wait_for("return mcp_tools.endpoint()", timeout=15_000)
    assert await tools(second) != set()
    assert await status(first) == 401


@pytest.mark.slow
async def test_a_session_over_http_continues_after_a_restart_of_the_bridge(start_bridge: Start) -> None:
    """With its own token only."""
    bridge = await start_bridge(init=ROOT_TOOLS)
    entry, other = [await bridge.nvim.lua(ENTRY, "http") for _ in range(2)]
    about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
    accept = {"Accept": "application/json, text/event-stream"}

    async def post(headers: dict[str, str], method: str, **params: Any) -> httpx2.Response:
        async with http_client(headers | accept) as http:
            body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            return await http.post(entry["url"], json=body)

    opened = await post(headers_of(entry), "initialize", **about)
    session = {"Mcp-Session-Id": opened.headers["Mcp-Session-Id"]}
    await bridge.nvim.request("nvim_command", "McpTools restart")
    await bridge.nvim.wait_for("return require('mcp-tools').status().state ~= 'ready'")
    await bridge.nvim.wait_for("return mcp_tools.endpoint()", timeout=15_000)
    for headers in (headers_of(other), {"Authorization": f"Bearer {bridge.token}"}):
        assert (await post(headers | session, "tools/list")).status_code == 404
    assert "result" in (await post(headers_of(entry) | session, "tools/list")).json()


@pytest.mark.slow
async def test_the_token_that_was_unused_longest_makes_room_for_a_new_one(start_bridge: Start) -> None:
    bridge = await start_bridge(init=ROOT_TOOLS)
    used, unused = [await bridge.nvim.lua(ENTRY, "http") for _ in range(2)]
    async with http_client(headers_of(used)) as http, http_client(headers_of(unused)) as other:
        transport = streamable_http_client(used["url"], http_client=http)
        async with Client(transport, mode="legacy") as client:
            await bridge.nvim.wait_for("return (mcp_tools.status().sessions or { count = 0 }).count == 1")
            await bridge.nvim.lua("for _ = 1, 63 do mcp_tools.acp_server({ transport = 'http' }) end")
            async with asyncio.timeout(15):
                while (await other.post(unused["url"], json={})).status_code != 401:
                    await asyncio.sleep(0.02)
            assert (await client.list_tools()).tools
    lines = await bridge.nvim.lua("return require('mcp-tools.log').lines(20)")
    assert "acp_revoke" in str(lines)


def headers_of(entry: dict[str, Any]) -> dict[str, str]:
    return {header["name"]: header["value"] for header in entry["headers"]}
