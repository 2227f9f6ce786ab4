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

# Once: to register again is a change of the lists, which would be announced to the next client.
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


async def test_lists(resources: Bridge, transport: Transport) -> None:
    """Fixed ones and templates, those of the plugin and those of others."""
    async with connect(resources, transport) as client:
        fixed = {item.uri: item for item in (await client.list_resources()).resources}
        templates = {
            item.uri_template for item in (await client.list_resource_templates()).resource_templates
        }

        assert {"e2e://text", "nvim://buffers", "nvim://diagnostics"} <= fixed.keys()
        assert fixed["e2e://text"].mime_type == "text/markdown"
        assert {"e2e://item/{id}", "nvim://buffer/{+path}", "file:///{+path}"} <= templates


async def test_reads(resources: Bridge, transport: Transport) -> None:
    """Text, bytes, what a template makes later, unsaved text, data as JSON, and every listed resource."""
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


async def test_errors(resources: Bridge, transport: Transport) -> None:
    """Every miss is the same, whatever its cause; other failures name their code."""
    root = Path(await resources.nvim.lua("return probe.project.root()"))
    (root / ".env").write_text("SECRET=1\n")
    misses = [
        "e2e://none",
        "none://none",
        "nvim://buffer/none.txt",
        "file:///etc/passwd",
        f"file://{root}/.env",
        f"file://{root}/../../../../../etc/passwd",
        "nvim://buffer/a%00b",
        "",
    ]
    code = -32602 if transport == "stateless" else -32002
    async with connect(resources, transport) as client:
        for uri in misses:
            with pytest.raises(MCPError) as caught:
                await client.read_resource(uri)
            error = caught.value.error
            assert (error.code, error.message, error.data) == (code, "Resource not found", {"uri": uri}), uri
        for uri, code_of_it, name in (
            ("e2e://large", -32005, "too_large"),
            ("e2e://broken", -32603, "execution_error"),
        ):
            with pytest.raises(MCPError) as caught:
                await client.read_resource(uri)
            error = caught.value.error
            assert (error.code, error.data["code"]) == (code_of_it, name)
            assert "stack traceback" not in error.message


async def test_an_edit_is_told_at_once_and_not_too_often(resources: Bridge, transport: Transport) -> None:
    """Who subscribed to a buffer hears of an edit within 200 ms, of a storm at most five times a second."""
    uri = await open_file(resources, f"{transport}.txt", "text\n")
    async with follow(resources, transport, [uri]) as (client, news):
        begun = time.monotonic()
        await resources.nvim.lua("vim.api.nvim_buf_set_lines(0, 0, 1, false, { 'edited' })")
        took = await news.wait_for(uri) - begun
        assert took < 0.2 + await delay(resources)
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


async def delay(bridge: Bridge) -> float:
    """What a turn of the editor takes on a busy machine, in seconds."""
    begun = time.monotonic()
    await bridge.nvim.lua("return 1")
    return time.monotonic() - begun


async def test_a_watch_lasts_as_long_as_its_subscribers(resources: Bridge, transport: Transport) -> None:
    """The first subscriber starts it, the last one's end stops it; what changes is told in between."""
    async with follow(resources, transport, ["e2e://text"]) as (_, news):
        async with follow(resources, transport, ["e2e://text"]) as (_, others):
            assert await resources.nvim.lua("return Watched.count") == 1
            await resources.nvim.lua("Watched.changed()")
            await news.wait_for("e2e://text")
            await others.wait_for("e2e://text")
        assert await resources.nvim.lua("return Watched.count") == 1
        assert await resources.nvim.lua("mcp_tools.notify_resource('e2e://text') return true")
    await resources.nvim.wait_for("return Watched.count == 0")


async def test_a_client_that_goes_away_is_not_watched_for(resources: Bridge, transport: Transport) -> None:
    """The end of a session, or of a stream, ends its subscriptions."""
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


async def test_new_resources_are_announced(resources: Bridge, transport: Transport) -> None:
    """A resource that comes or goes is told, and then listed or not."""
    add = "mcp_tools.register_resource({ uri = ..., name = 'new', read = function(ctx) ctx('') end })"
    async with follow(resources, transport) as (client, news):
        await resources.nvim.lua(add, "e2e://new")
        await news.wait_for("resources")
        listed = [item.uri for item in (await client.list_resources(cache_mode="bypass")).resources]
        assert "e2e://new" in listed
        news.seen.clear()
        await resources.nvim.lua("mcp_tools.unregister_resource(...)", "e2e://new")
        await news.wait_for("resources")
        listed = [item.uri for item in (await client.list_resources(cache_mode="bypass")).resources]
        assert "e2e://new" not in listed


async def test_completion(resources: Bridge, transport: Transport) -> None:
    """Variables of templates: those of others, and paths of open files."""
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
