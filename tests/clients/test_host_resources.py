"""Clients of both versions of the TypeScript SDK let tools read their files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support import node
from tests.support.bridge import Bridge
from tests.support.host import LIST, READ
from tests.support.nvim import ROOT

pytestmark = pytest.mark.asyncio(loop_scope="session")

SCRIPT = Path(__file__).with_name("host.mjs")
REGISTER = f"dofile([[{ROOT / 'tests' / 'e2e' / 'host_resources.lua'}]])"
NAMES = "{ 'host_look', 'host_read', 'host_list', 'host_size' }"


@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize("transport", ["http", pytest.param("sse", marks=pytest.mark.slow)])
async def test_tools_read_its_files(bridge: Bridge, tmp_path: Path, version: str, transport: str) -> None:
    url = f"{bridge.url}/{'sse' if transport == 'sse' else 'mcp'}"
    args = (version, transport, url)
    await bridge.nvim.lua("_G.SeenBefore = Seen")
    await bridge.nvim.lua(REGISTER)
    try:
        async with node.running(SCRIPT, *args, home=tmp_path, env={"TOKEN": bridge.token}) as client:
            assert await client.line() == "[true,true,true]"
            assert await client.line() == {"method": READ, "params": {"uri": "files://a"}}
            content = {"uri": "files://a", "mimeType": "text/plain", "text": "text of files://a"}
            assert json.loads(await client.line())["contents"] == [content]
            resources = [{"uri": "files://a", "name": "a", "mimeType": "text/plain"}]
            for sent in (None, {"mimeType": "text/csv", "tags": ["x"]}):
                asked = await client.line()
                assert asked["method"] == LIST
                assert ((asked["params"] or {}).get("_meta") or {}).get("filter") == sent
                assert json.loads(await client.line())["resources"] == resources
            await client.end()
    finally:
        await bridge.nvim.lua(f"for _, name in ipairs({NAMES}) do mcp_tools.unregister(name) end")
        await bridge.nvim.lua("mcp_tools.unregister_resource('host://first')")
        await bridge.nvim.lua("mcp_tools.unregister_prompt('about_file') Seen = SeenBefore")
