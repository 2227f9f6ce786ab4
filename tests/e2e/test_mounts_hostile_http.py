"""Mounted servers at a URL that want to fill who mounts them, or to have what was meant for another."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.support import mounts
from tests.support.bridge import Bridge, connect
from tests.support.results import error_of, text_of
from tests.support.shared import Keep

# The bridge bounds it; the editor's part is that of every Neovim.
pytestmark = [pytest.mark.asyncio(loop_scope="session")]

GO = {"name": "go", "inputSchema": {"type": "object", "properties": {}}}
LARGE = b"E" * 40_000_000


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def bridge(nvim_version: str, keep: Keep) -> AsyncIterator[Bridge]:
    """A bridge where everything may run, without mounts."""
    yield await keep(nvim_version, setup="{ approval = { default = 'allow' } }")


def reply(status: str, kind: str, body: bytes, *more: str) -> bytes:
    """Bytes of an answer."""
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
        """One connection."""
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
        """To one request."""
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
        """A result."""
        body = json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode()
        return reply("200 OK", "application/json", body, *more)


@contextlib.asynccontextmanager
async def serving(how: str, elsewhere: str = "") -> AsyncIterator[Server]:
    """One that listens."""
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
    assert ("more than" if how in ("capitals", "circle") else "compressed") in fault["message"]
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
