"""Mounted servers of other kinds: TypeScript SDK, from npm, another bridge, without sessions."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from mcp import types

from tests.support import mounts, node, processes
from tests.support.bridge import Bridge, connect
from tests.support.results import error_of, eventually, text_of
from tests.support.shared import Keep

from .test_mounts import CALL, call

pytestmark = [pytest.mark.asyncio(loop_scope="session")]

TYPESCRIPT = mounts.SERVERS / "typescript_server.mjs"
EVERYTHING = node.MODULES / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js"
TOKEN = "a-token-for-the-typescript-server"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def bridge(nvim_version: str, keep: Keep) -> Bridge:
    """A bridge that allows every call, without mounts."""
    bridge = await keep(nvim_version, setup="{ approval = { default = 'allow' } }")
    await bridge.nvim.lua("vim.env.MCPT_TOKEN = ...", TOKEN)
    return bridge


@contextlib.asynccontextmanager
async def typescript(home: Path) -> AsyncIterator[tuple[node.Script, dict[str, Any]]]:
    """The server, and its spec as a mount."""
    async with node.running(TYPESCRIPT, home=home, env={"TOKEN": TOKEN}) as server:
        spec = {"url": f"http://127.0.0.1:{(await server.line())['port']}/mcp", "allow": ["elicitation"]}
        spec["headers"] = {"Authorization": "Bearer ${env:MCPT_TOKEN}", "X-Team": "tools"}
        yield server, spec | {"secrets": ["MCPT_TOKEN"]}


async def elicit(_: Any, __: Any) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"name": "Ada"})


async def test_a_server_at_a_url(bridge: Bridge, tmp_path: Path) -> None:
    """With headers: progress, cancel, a question, new tools, and a new session after it forgot ours."""
    steps: list[float] = []

    async def progress(done: float, _: float | None, __: str | None) -> None:
        steps.append(done)

    async with (
        typescript(tmp_path) as (server, spec),
        mounts.mounted(bridge, "ts", spec) as status,
        connect(bridge, "sessions", elicitation_callback=elicit) as client,
    ):
        assert status["server"] == "typescript-upstream 2.0"
        assert await server.line() == ["session", "tools"]
        assert text_of(await client.call_tool("ts__echo", {"text": "ü"})) == "ü"
        assert text_of(await client.call_tool("ts__count", progress_callback=progress)) == "counted"
        assert steps == [1, 2, 3]
        assert text_of(await client.call_tool("ts__ask")) == "accept Ada"
        held = asyncio.create_task(client.call_tool("ts__hold"))
        assert await server.line() == ["holding"]
        held.cancel()
        assert await server.line() == ["cancelled"]
        await client.call_tool("ts__grow")
        await bridge.nvim.wait_for("return mcp_tools.list_tools().ts__grown ~= nil")
        server.send("forget")
        forgotten = error_of(await client.call_tool("ts__echo", {"text": "x"}))
        assert "does not know our session" in forgotten["message"]
        assert await server.line() == ["session", "tools"]
        assert text_of(await client.call_tool("ts__echo", {"text": "again"})) == "again"


async def test_a_wrong_token_or_a_missing_server_is_reported(bridge: Bridge, tmp_path: Path) -> None:
    async with typescript(tmp_path) as (_, spec):
        spec["headers"] = {"Authorization": "Bearer of another token"}
        async with mounts.mounted(bridge, "ts", spec, "waiting") as status:
            assert status["error"].startswith("HTTP 401 Unauthorized: ")
    async with mounts.mounted(bridge, "ts", spec, "waiting") as status:
        assert "connect" in status["error"].lower()


async def test_the_reference_server_from_npm_works(bridge: Bridge) -> None:
    async with (
        mounts.mounted(bridge, "all", {"command": [str(node.NODE), str(EVERYTHING), "stdio"]}) as status,
        connect(bridge, "sessions") as client,
    ):
        assert status["server"].startswith("mcp-servers/everything"), status
        assert status["faults"] == []
        tools = {tool.name for tool in (await client.list_tools()).tools}
        assert {"all__echo", "all__get-sum", "all__get-structured-content"} <= tools, tools
        assert text_of(await client.call_tool("all__echo", {"message": "hi"})) == "Echo: hi"
        weather = await client.call_tool("all__get-structured-content", {"location": "Chicago"})
        assert set(weather.structured_content or {}) == {"temperature", "conditions", "humidity"}
        image = (await client.call_tool("all__get-tiny-image")).content
        assert any(isinstance(block, types.ImageContent) for block in image)
        uris = [resource.uri for resource in (await client.list_resources()).resources]
        own = next(uri for uri in uris if uri.startswith("all+"))
        assert (await client.read_resource(own)).contents
        prompts = {prompt.name for prompt in (await client.list_prompts()).prompts}
        assert "all__simple-prompt" in prompts, prompts
        assert (await client.get_prompt("all__simple-prompt")).messages


async def test_another_bridge_can_be_mounted(bridge: Bridge, tmp_path: Path) -> None:
    spec = {"url": f"{bridge.url}/mcp?tools=hold,count", "headers": bridge.headers}
    async with mounts.mounted(bridge, "me", spec):
        names = await bridge.nvim.lua("return vim.tbl_keys(mcp_tools.list_tools())")
        assert "me__nvim_hold" in names
        assert not any(name.startswith("me__me__") for name in names)
        await bridge.nvim.lua(CALL, "me__nvim_hold", {})
        await bridge.nvim.wait_for("return Seen.running == 1")
        await bridge.nvim.lua("_G.Handle:cancel()")
        await bridge.nvim.wait_for("return Seen.running == 0")
        assert "unknown" in (await call(bridge, "me__nvim_no_such"))["err"]["message"].lower()


SERVER = str(mounts.SERVERS / "modern_server.py")


@contextlib.asynccontextmanager
async def served(how: str, journal: Path) -> AsyncIterator[dict[str, Any]]:
    """The spec of the running server."""
    if how == "stdio":
        yield {"command": [sys.executable, SERVER, str(journal)], "allow": ["elicitation"]}
        return
    words = [sys.executable, SERVER, str(journal), "http"]
    process = await processes.start(*words, stdout=asyncio.subprocess.PIPE)
    try:
        port = int(await asyncio.wait_for(process.stdout.readline(), 20))
        yield {"url": f"http://127.0.0.1:{port}/mcp", "allow": ["elicitation"]}
    finally:
        process.kill()
        await process.wait()


@pytest.mark.slow
@pytest.mark.parametrize("how", ["stdio", "http"])
async def test_a_server_without_sessions(how: str, bridge: Bridge, tmp_path: Path) -> None:
    journal, steps = mounts.Journal(tmp_path / "journal"), []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        steps.append((done, total, message))

    async with (
        served(how, journal.path) as spec,
        mounts.mounted(bridge, "new", spec) as status,
        connect(bridge, "sessions", elicitation_callback=elicit) as client,
    ):
        assert status["server"] == "modern-upstream 1.0"
        assert text_of(await client.call_tool("new__echo", {"text": "hällo"})) == "hällo"
        refused = error_of(await client.call_tool("new__refuse"))
        assert refused == {"code": "tool_error", "message": "not today"}
        assert text_of(await client.call_tool("new__count", progress_callback=progress)) == "counted"
        assert steps == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]
        assert text_of(await client.call_tool("new__ask")) == 'asked accept {"name": "Ada"}'
        (contents,) = (await client.read_resource("new+test://static")).contents
        assert contents.text == "read test://static"  # type: ignore[union-attr]
        assert (await client.get_prompt("new__greet")).messages
        await bridge.nvim.lua("_G.Handle = mcp_tools.call('new__hold', {}, function() end)")
        await eventually(lambda: ["hold"] in journal.of("call"))
        await bridge.nvim.lua("_G.Handle:cancel()")
        await eventually(lambda: journal.of("cancelled"))
        assert (await call(bridge, "new__grow"))["result"] == "grown"
        await bridge.nvim.wait_for("return mcp_tools.list_tools().new__grown ~= nil")
