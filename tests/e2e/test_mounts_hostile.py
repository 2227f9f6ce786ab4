"""Mounted servers that try to fill or block the editor, over stdio and at a URL: every cost is bounded."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
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

# The bridge bounds it; the editor's part is that of every Neovim.
pytestmark = [pytest.mark.asyncio(loop_scope="session")]

SERVER = str(SERVERS / "hostile_server.py")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def bridge(nvim_version: str, keep: Keep) -> AsyncIterator[Bridge]:
    """A bridge where everything may run, without mounts."""
    yield await keep(nvim_version, setup="{ approval = { default = 'allow' } }")


def client_of(bridge: Bridge) -> AbstractAsyncContextManager[Any]:
    """Who calls."""
    return connect(bridge, "sessions")


def hostile(how: str) -> dict[str, Any]:
    """The spec of the server."""
    return {"command": [sys.executable, SERVER, how]}


async def names_of(bridge: Bridge) -> list[str]:
    """Its tools."""
    names: list[str] = await bridge.nvim.lua("return vim.tbl_keys(mcp_tools.list_tools())")
    return [name for name in names if name.startswith("evil__")]


async def log_of(bridge: Bridge) -> str:
    path: str = await bridge.nvim.lua("return probe.log.path()")
    return Path(path).read_text()


async def test_an_endless_list_is_cut(bridge: Bridge) -> None:
    """It is not asked for on and on; what came first is offered, and it is told that there is more."""
    async with mounts.mounted(bridge, "evil", hostile("endless")) as status, client_of(bridge) as client:
        pages = int(text_of(await client.call_tool("evil__go")))
        count = len(await names_of(bridge))
    assert pages <= 3
    assert 1 < count < 30
    assert "too long" in str(status["faults"])


async def test_faults_are_not_counted_for_ever(bridge: Bridge) -> None:
    """Of twenty thousand items that are none some are told."""
    async with mounts.mounted(bridge, "evil", hostile("bad")) as status, client_of(bridge) as client:
        assert text_of(await client.call_tool("evil__go")) == "1"
    assert len(status["faults"]) < 100


@pytest.mark.slow
async def test_lists_that_change_all_the_time(bridge: Bridge) -> None:
    """Each look is followed by a time without one."""
    async with mounts.mounted(bridge, "evil", hostile("changing")), client_of(bridge) as client:
        looks = int(text_of(await client.call_tool("evil__go")))
    assert looks <= 4


async def test_output_that_is_none_does_not_fill_the_log(bridge: Bridge) -> None:
    """Twenty thousand lines, of which some are logged."""
    before = len((await log_of(bridge)).splitlines())
    async with mounts.mounted(bridge, "evil", hostile("garbage")), client_of(bridge) as client:
        await client.call_tool("evil__go")
    assert len((await log_of(bridge)).splitlines()) - before < 1000


@pytest.mark.parametrize("how", ["logs", "progress", "large logs", "large progress"])
async def test_events_have_a_rate_and_a_length(bridge: Bridge, how: str) -> None:
    """Five thousand at once do not reach the editor, nor megabytes of one."""
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
    async with mounts.mounted(bridge, "evil", hostile(how)), client_of(bridge) as client:
        await client.call_tool("evil__go")
    events, longest = await bridge.nvim.lua("_G.Stop() return { _G.Events, _G.Longest }")
    assert 0 < events < 2000
    assert 0 < longest < 20_000


async def test_it_is_not_asked_to_answer_everything(bridge: Bridge) -> None:
    """A server that asks 3000 things and does not read gets a part of the answers; the call goes on."""
    async with mounts.mounted(bridge, "evil", hostile("pings")), client_of(bridge) as client:
        pongs = int(text_of(await client.call_tool("evil__go")))
    assert 0 < pongs < 1000


async def test_errors_and_names_have_a_length(bridge: Bridge) -> None:
    """Megabytes of either are for nobody."""
    async with mounts.mounted(bridge, "evil", hostile("error")), client_of(bridge) as client:
        assert len(error_of(await client.call_tool("evil__go"))["message"]) < 20_000
    async with mounts.mounted(bridge, "evil", hostile("name")) as status:
        assert len(status["server"]) <= 100


async def test_a_question_has_a_length(bridge: Bridge) -> None:
    """Nobody reads megabytes before they answer; the editor is spared them."""
    spec = {**hostile("question"), "allow": ["elicitation"]}

    async def elicit(*_: Any) -> types.ElicitResult:
        return types.ElicitResult(action="decline")

    async with (
        mounts.mounted(bridge, "evil", spec),
        connect(bridge, "sessions", elicitation_callback=elicit) as client,
    ):
        answer = json.loads(text_of(await client.call_tool("evil__go")))
    assert answer["error"]["code"] == -32005
    assert "limits.tool_result" in answer["error"]["message"]


async def test_structure_counts_for_the_limit(bridge: Bridge) -> None:
    """A result is as large as all that is in it."""
    async with mounts.mounted(bridge, "evil", hostile("structured")), client_of(bridge) as client:
        assert error_of(await client.call_tool("evil__go"))["code"] == "too_large"


async def test_what_cannot_be_read_ends_what_waits_for_it(bridge: Bridge) -> None:
    """A call at once, and with it a start that says why."""
    async with mounts.mounted(bridge, "evil", hostile("unreadable")), client_of(bridge) as client:
        assert "not a valid message" in error_of(await client.call_tool("evil__go"))["message"]
    async with mounts.mounted(bridge, "evil", hostile("deep"), "waiting") as status:
        assert "nested too deep" in status["error"]


async def test_names_that_do_not_show_what_they_are(bridge: Bridge) -> None:
    """Control characters and those that turn text around are in no name."""
    async with mounts.mounted(bridge, "evil", hostile("names")) as status:
        names = await names_of(bridge)
    assert names == ["evil__go"]
    assert len(status["faults"]) == 4


# The bridge bounds it; the editor's part is that of every Neovim.

GO = {"name": "go", "inputSchema": {"type": "object", "properties": {}}}
LARGE = b"E" * 40_000_000


def reply(status: str, kind: str, body: bytes, *more: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {len(body)}", *more]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class Server:
    """What it does with a call is `how`.

    Attributes:
        seen: method and headers of each request.
    """

    def __init__(self, how: str, elsewhere: str = "") -> None:
        self.how = how
        self.elsewhere = elsewhere
        self.seen: list[str] = []
        self.writers: list[asyncio.StreamWriter] = []
        self.url = ""

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                self.seen.append(head)
                size = [
                    line[15:] for line in head.lower().split("\r\n") if line.startswith("content-length:")
                ]
                body = await reader.readexactly(int(size[0]) if size else 0)
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
        """What it is about."""
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
    """It, mounted, and a client."""
    spec = {"url": server.url, "headers": {"Authorization": "Bearer for-this-server-alone"}}
    async with mounts.mounted(bridge, "web", spec), connect(bridge, "sessions") as client:
        yield client


@pytest.mark.parametrize("how", ["compressed", "events", "capitals", "circle"])
async def test_no_answer_is_kept_beyond_the_limit(bridge: Bridge, how: str) -> None:
    """Neither a compressed one, nor one whose type is spelled otherwise, nor that of a redirect."""
    async with serving(how) as server, mounted(bridge, server) as client:
        before = len(server.seen)
        fault = error_of(await client.call_tool("web__go"))
    assert ("larger than" if how in ("capitals", "circle") else "compressed") in fault["message"]
    assert len([head for head in server.seen[before:] if head.startswith("POST")]) < 8


async def test_headers_go_to_nobody_else(bridge: Bridge) -> None:
    """A redirect to another origin is not followed."""
    async with (
        serving("other") as other,
        serving("elsewhere", other.url) as server,
        mounted(bridge, server) as client,
    ):
        fault = error_of(await client.call_tool("web__go"))
    assert "not followed" in fault["message"]
    assert other.seen == []


@pytest.mark.slow
async def test_streams_that_end_at_once_are_not_opened_on_and_on(bridge: Bridge) -> None:
    """Whatever the server says of the time between two."""
    began = time.monotonic()
    async with serving("streams") as server, mounted(bridge, server) as client:
        for _ in range(60):
            assert text_of(await client.call_tool("web__go")) == "done"
    took = time.monotonic() - began
    assert len([head for head in server.seen if head.startswith("GET")]) < took + 3
