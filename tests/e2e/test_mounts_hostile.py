"""Hostile mounted servers, over stdio and at a URL: their cost for editor and bridge is bounded."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import re
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
import pytest_asyncio

from tests.support import mounts
from tests.support.bridge import Bridge, connect
from tests.support.mounts import SERVERS
from tests.support.results import error_of, text_of
from tests.support.shared import Keep

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

SERVER = str(SERVERS / "hostile_server.py")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def bridge(nvim_version: str, keep: Keep) -> AsyncIterator[Bridge]:
    """A bridge that allows every call, without mounts."""
    yield await keep(nvim_version, setup="{ approval = { default = 'allow' } }")


@contextlib.asynccontextmanager
async def hostile(
    bridge: Bridge, how: str, state: str = "ready", elicit: Any = None
) -> AsyncIterator[tuple[Any, Any]]:
    """The server, mounted: its status, and a client's `call()` of its tool `go`."""
    spec = {"command": [sys.executable, SERVER, how], "allow": ["elicitation"] if elicit else []}
    async with (
        mounts.mounted(bridge, "evil", spec, state) as status,
        connect(bridge, "sessions", elicitation_callback=elicit) as client,
    ):
        yield status, lambda: client.call_tool("evil__go")


async def names_of(bridge: Bridge) -> list[str]:
    names: list[str] = await bridge.nvim.lua("return vim.tbl_keys(mcp_tools.list_tools())")
    return [name for name in names if name.startswith("evil__")]


async def log_of(bridge: Bridge) -> str:
    path: str = await bridge.nvim.lua("return probe.log.path()")
    return Path(path).read_text()


async def test_an_endless_tool_list_is_cut(bridge: Bridge) -> None:
    async with hostile(bridge, "endless") as (status, call):
        pages = int(text_of(await call()))
        count = len(await names_of(bridge))
    assert pages <= 3
    assert 1 < count < 30
    assert "too long" in str(status["faults"])


async def test_not_all_of_many_invalid_items_are_reported(bridge: Bridge) -> None:
    async with hostile(bridge, "bad") as (status, call):
        assert text_of(await call()) == "1"
    assert len(status["faults"]) < 100


@pytest.mark.slow
async def test_a_list_that_changes_all_the_time_is_read_rarely(bridge: Bridge) -> None:
    async with hostile(bridge, "changing") as (_, call):
        assert int(text_of(await call())) <= 4


async def test_invalid_output_does_not_fill_the_log(bridge: Bridge) -> None:
    before = len((await log_of(bridge)).splitlines())
    async with hostile(bridge, "garbage") as (_, call):
        await call()
    assert len((await log_of(bridge)).splitlines()) - before < 1000


@pytest.mark.parametrize("how", ["logs", "progress", "large logs", "large progress"])
async def test_events_are_limited_in_number_and_length(bridge: Bridge, how: str) -> None:
    count = """
    local remote = probe.remote
    local receive = remote.receive
    _G.Events, _G.Longest = 0, 0
    remote.receive = function(verb, ...)
      if verb ~= 'remote_result' then
        _G.Events = _G.Events + 1
        _G.Longest = math.max(_G.Longest, #tostring((select(select('#', ...), ...))))
      end
      return receive(verb, ...)
    end
    _G.Stop = function() remote.receive = receive end
    """
    await bridge.nvim.lua(count)
    async with hostile(bridge, how) as (_, call):
        await call()
    events, longest = await bridge.nvim.lua("_G.Stop() return { _G.Events, _G.Longest }")
    assert 0 < events < 2000
    assert 0 < longest < 20_000


async def test_only_some_of_many_requests_are_answered(bridge: Bridge) -> None:
    async with hostile(bridge, "pings") as (_, call):
        assert 0 < int(text_of(await call())) < 1000


async def test_errors_and_names_are_cut(bridge: Bridge) -> None:
    async with hostile(bridge, "error") as (_, call):
        assert len(error_of(await call())["message"]) < 20_000
    async with hostile(bridge, "name") as (status, _):
        assert len(status["server"]) <= 100


async def test_a_too_long_question_is_refused(bridge: Bridge) -> None:
    async def elicit(*_: Any) -> types.ElicitResult:
        return types.ElicitResult(action="decline")

    async with hostile(bridge, "question", elicit=elicit) as (_, call):
        answer = json.loads(text_of(await call()))
    assert answer["error"]["code"] == -32005
    assert "limits.tool_result" in answer["error"]["message"]


async def test_structured_content_counts_for_the_size_limit(bridge: Bridge) -> None:
    async with hostile(bridge, "structured") as (_, call):
        assert error_of(await call())["code"] == "too_large"


async def test_an_unreadable_answer_ends_the_call_or_the_start(bridge: Bridge) -> None:
    async with hostile(bridge, "unreadable") as (_, call):
        assert "not a valid message" in error_of(await call())["message"]
    async with hostile(bridge, "deep", "waiting") as (status, _):
        assert "nested too deep" in status["error"]


async def test_names_with_invisible_characters_are_not_exposed(bridge: Bridge) -> None:
    async with hostile(bridge, "names") as (status, _):
        assert await names_of(bridge) == ["evil__go"]
    assert len(status["faults"]) == 4


GO = {"name": "go", "inputSchema": {"type": "object", "properties": {}}}
LARGE = b"E" * 40_000_000


def reply(status: str, kind: str, body: bytes, *more: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {len(body)}", *more]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class Server:
    """Answers a call in the way `how`; `seen` has method and headers of each request."""

    def __init__(self, how: str, elsewhere: str = "") -> None:
        self.how, self.elsewhere, self.url = how, elsewhere, ""
        self.seen: list[str] = []
        self.writers: list[asyncio.StreamWriter] = []

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                self.seen.append(head)
                size = re.search(r"(?i)\r\ncontent-length: *(\d+)", head)
                body = await reader.readexactly(int(size[1]) if size else 0)
                writer.write(self.reply(head, json.loads(body) if body else {}))
                await writer.drain()

    def reply(self, head: str, message: dict[str, Any]) -> bytes:
        if head.startswith("GET"):
            if self.how != "streams":
                return reply("405 No", "text/plain", b"")
            return reply("200 OK", "text/event-stream", b"retry: 0\n\n")
        method, number = message.get("method"), message.get("id")
        if number is None:
            return reply("202 Accepted", "text/plain", b"")
        if method == "initialize":
            about = {"name": "hostile", "version": "0"}
            result: dict[str, Any] = {"protocolVersion": "2025-06-18", "serverInfo": about}
            return self.json(number, result | {"capabilities": {"tools": {}}}, "Mcp-Session-Id: s")
        if method == "tools/list":
            return self.json(number, {"tools": [GO]})
        if method == "tools/call":
            return self.call(number)
        return self.json(number, {})

    def call(self, number: int) -> bytes:
        large = b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"x":"%s"}}' % (number, LARGE)
        match self.how:
            case "compressed":
                return reply("200 OK", "application/json", gzip.compress(large, 1), "Content-Encoding: gzip")
            case "events":
                data = b"event: message\ndata: " + large + b"\n\n"
                return reply("200 OK", "text/event-stream", gzip.compress(data, 1), "Content-Encoding: gzip")
            case "capitals":
                return reply("200 OK", "Application/JSON", large)
            case "elsewhere":
                return reply("307 Go", "text/plain", b"", f"Location: {self.elsewhere}")
            case "circle":
                return reply("307 Go", "text/plain", LARGE, f"Location: {self.url}")
        return self.json(number, {"content": [{"type": "text", "text": "done"}]})

    def json(self, number: int, result: dict[str, Any], *more: str) -> bytes:
        body = json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode()
        return reply("200 OK", "application/json", body, *more)


@contextlib.asynccontextmanager
async def serving(how: str, elsewhere: str = "") -> AsyncIterator[Server]:
    server = Server(how, elsewhere)
    listener = await asyncio.start_server(server.answer, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/mcp"
    try:
        yield server
    finally:
        listener.close()
        for writer in server.writers:
            writer.close()
        for writer in server.writers:
            with contextlib.suppress(OSError):
                await writer.wait_closed()


@contextlib.asynccontextmanager
async def mounted(bridge: Bridge, server: Server) -> AsyncIterator[Any]:
    spec = {"url": server.url, "headers": {"Authorization": "Bearer for-this-server-alone"}}
    async with mounts.mounted(bridge, "web", spec), connect(bridge, "sessions") as client:
        yield client


@pytest.mark.parametrize("how", ["compressed", "events", "capitals", "circle"])
async def test_a_too_large_answer_is_refused_however_it_is_sent(bridge: Bridge, how: str) -> None:
    async with serving(how) as server, mounted(bridge, server) as client:
        before = len(server.seen)
        fault = error_of(await client.call_tool("web__go"))
    assert ("larger than" if how in ("capitals", "circle") else "compressed") in fault["message"]
    assert len([head for head in server.seen[before:] if head.startswith("POST")]) < 8


async def test_a_redirect_to_another_origin_is_not_followed(bridge: Bridge) -> None:
    async with (
        serving("other") as other,
        serving("elsewhere", other.url) as server,
        mounted(bridge, server) as client,
    ):
        fault = error_of(await client.call_tool("web__go"))
    assert "not followed" in fault["message"]
    assert other.seen == []


@pytest.mark.slow
async def test_streams_that_end_at_once_are_reopened_rarely(bridge: Bridge) -> None:
    began = time.monotonic()
    async with serving("streams") as server, mounted(bridge, server) as client:
        for _ in range(60):
            assert text_of(await client.call_tool("web__go")) == "done"
    took = time.monotonic() - began
    assert len([head for head in server.seen if head.startswith("GET")]) < took + 3
