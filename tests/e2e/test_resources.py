"""Resources from an official client to Lua and back, over every transport."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from mcp import MCPDeprecationWarning, MCPError, types

from tests.support.bridge import Bridge, Transport, connect
from tests.support.news import follow
from tests.support.nvim import ROOT

pytestmark = pytest.mark.asyncio(loop_scope="session")

# Once: registering again would be announced to the next client.
REGISTER = f"if not _G.Watched then dofile([[{ROOT / 'tests' / 'e2e' / 'resources.lua'}]]) end"
SPEED = 5
"""Updates a second at most."""


@pytest_asyncio.fixture(loop_scope="session")
async def resources(common_bridge: Bridge) -> Bridge:
    """A bridge whose editor has the resources of tests/e2e/resources.lua and an open file."""
    await common_bridge.nvim.lua(REGISTER)
    return common_bridge


async def open_file(bridge: Bridge, name: str, text: str) -> str:
    """Writes and opens a file of the project; its URI as a buffer."""
    root = Path(await bridge.nvim.lua("return probe.project.root()"))
    (root / name).write_text(text)
    await bridge.nvim.lua("vim.cmd('edit! ' .. vim.fn.fnameescape(...))", str(root / name))
    return f"nvim://buffer/{name}"


async def test_resources_and_templates_are_listed(resources: Bridge, transport: Transport) -> None:
    async with connect(resources, transport) as client:
        fixed = {item.uri: item for item in (await client.list_resources()).resources}
        listed = (await client.list_resource_templates()).resource_templates
        templates = {item.uri_template for item in listed}
        assert {"e2e://text", "nvim://buffers", "nvim://diagnostics"} <= fixed.keys()
        assert fixed["e2e://text"].mime_type == "text/markdown"
        assert {"e2e://item/{id}", "nvim://buffer/{+path}", "file:///{+path}"} <= templates


async def test_every_listed_resource_can_be_read(resources: Bridge, transport: Transport) -> None:
    uri = await open_file(resources, "note.txt", "saved\n")
    await resources.nvim.lua("vim.api.nvim_buf_set_lines(0, 0, 1, false, { 'änderung' })")
    async with connect(resources, transport) as client:

        async def read(uri: str) -> Any:
            return (await client.read_resource(uri)).contents[0]

        text = await read("e2e://text")
        assert (text.uri, text.mime_type, text.text) == ("e2e://text", "text/markdown", "# Hällo")
        assert base64.b64decode((await read("e2e://bytes")).blob) == b"\0\1\xff"
        assert (await read("e2e://item/a%20b")).text == "item a b"
        assert (await read(uri)).text == "änderung\n"
        assert isinstance(json.loads((await read("nvim://buffers")).text), dict | list)
        for item in (await client.list_resources()).resources:
            if item.uri not in ("e2e://large", "e2e://broken"):
                assert (await read(item.uri)).uri == item.uri


async def test_forbidden_looks_like_missing(resources: Bridge, transport: Transport) -> None:
    root = Path(await resources.nvim.lua("return probe.project.root()"))
    (root / ".env").write_text("SECRET=1\n")
    misses = ["e2e://none", "none://none", "nvim://buffer/none.txt", "nvim://buffer/a%00b", ""]
    misses += ["file:///etc/passwd", f"file://{root}/.env", f"file://{root}/../../../../../etc/passwd"]
    code = -32602 if transport == "stateless" else -32002
    async with connect(resources, transport) as client:
        for uri in misses:
            with pytest.raises(MCPError) as caught:
                await client.read_resource(uri)
            error = caught.value.error
            assert (error.code, error.message, error.data) == (code, "Resource not found", {"uri": uri}), uri
        for name, code, data in (("large", -32005, "too_large"), ("broken", -32603, "execution_error")):
            with pytest.raises(MCPError) as caught:
                await client.read_resource(f"e2e://{name}")
            error = caught.value.error
            assert (error.code, error.data["code"]) == (code, data)
            assert "stack traceback" not in error.message


@pytest.mark.slow
async def test_edits_are_notified_with_a_limited_rate(resources: Bridge, transport: Transport) -> None:
    uri = await open_file(resources, f"{transport}.txt", "text\n")
    async with follow(resources, transport, [uri]) as (client, news):
        await resources.nvim.lua("vim.api.nvim_buf_set_lines(0, 0, 1, false, { 'edited' })")
        await news.wait_for(uri)
        assert (await client.read_resource(uri, cache_mode="bypass")).contents[0].text == "edited\n"
        storm = "for i = 1, 50 do vim.api.nvim_buf_set_lines(0, 0, 1, false, { 'n' .. ... .. '-' .. i }) end"
        begun = time.monotonic()
        for n in range(40):
            await resources.nvim.lua(storm, n)
            await asyncio.sleep(0.02)
        lasted = time.monotonic() - begun
        received = [at for what, at in news.seen if what == uri and at >= begun]
        assert 2 <= len(received) <= lasted * SPEED + 2
        await resources.nvim.lua("vim.bo.modified = false")


async def test_a_watch_lasts_as_long_as_its_subscribers(resources: Bridge, transport: Transport) -> None:
    async with follow(resources, transport, ["e2e://text"]) as (_, news):
        async with follow(resources, transport, ["e2e://text"]) as (_, others):
            assert await resources.nvim.lua("return Watched.count") == 1
            await resources.nvim.lua("Watched.changed()")
            await news.wait_for("e2e://text")
            await others.wait_for("e2e://text")
        assert await resources.nvim.lua("return Watched.count") == 1
        assert await resources.nvim.lua("mcp_tools.notify_resource('e2e://text') return true")
    await resources.nvim.wait_for("return Watched.count == 0")


async def test_the_end_of_a_client_ends_its_subscriptions(resources: Bridge, transport: Transport) -> None:
    if transport == "sessions":
        pytest.skip("a session outlives its connections; its end is tested in tests/unit")
    async with connect(resources, transport) as client:
        if transport == "stateless":
            async with client.listen(resource_subscriptions=["e2e://text"]):
                assert await resources.nvim.lua("return Watched.count") == 1
        else:
            with pytest.warns(MCPDeprecationWarning):
                await client.subscribe_resource("e2e://text")
            assert await resources.nvim.lua("return Watched.count") == 1
    await resources.nvim.wait_for("return Watched.count == 0")


async def test_added_and_removed_resources_are_announced(resources: Bridge, transport: Transport) -> None:
    add = "mcp_tools.register_resource({ uri = ..., name = 'new', read = function(ctx) ctx('') end })"
    async with follow(resources, transport) as (client, news):
        for code, exists in ((add, True), ("mcp_tools.unregister_resource(...)", False)):
            news.seen.clear()
            await resources.nvim.lua(code, "e2e://new")
            await news.wait_for("resources")
            listed = [item.uri for item in (await client.list_resources(cache_mode="bypass")).resources]
            assert ("e2e://new" in listed) == exists


async def test_template_variables_are_completed(resources: Bridge, transport: Transport) -> None:
    await open_file(resources, "complete_me.txt", "")
    async with connect(resources, transport) as client:

        async def complete(uri: str, name: str, value: str) -> list[str]:
            ref = types.ResourceTemplateReference(uri=uri)
            return (await client.complete(ref, {"name": name, "value": value})).completion.values

        assert await complete("e2e://item/{id}", "id", "o") == ["one", "other"]
        assert await complete("e2e://item/{id}", "none", "o") == []
        assert "complete_me.txt" in await complete("nvim://buffer/{+path}", "path", "comp")
        with pytest.raises(MCPError) as caught:
            await complete("e2e://none", "id", "")
        assert caught.value.error.code == -32602
