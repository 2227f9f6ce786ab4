"""Connections that do not get on: silent ones, slow heads, slow bodies."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from mcp_tools_nvim.http import handlers, listener
from mcp_tools_nvim.http.listener import MAX_UNAUTHENTICATED
from tests.support.memory import ToolContext
from tests.support.served import JSON_AND_SSE, TOKEN, Served, eventually, served

HEAD = 0.5


@pytest.fixture
async def bridge() -> AsyncIterator[Served]:
    async with served(head_seconds=HEAD) as running:
        running.editor.add_tool("echo", lambda ctx, arguments: "ok")
        yield running


async def closed_after(reader: asyncio.StreamReader) -> tuple[float, bytes]:
    """Seconds until the server closes the connection, and what it said."""
    begin, said = time.monotonic(), b""
    async with asyncio.timeout(10):
        # What was on its way to a connection that is closed resets it.
        with contextlib.suppress(ConnectionResetError):
            while data := await reader.read(1 << 16):
                said += data
    return time.monotonic() - begin, said


@pytest.mark.slow
async def test_a_connection_that_says_nothing(bridge: Served) -> None:
    """It is closed when the time for a head is over, and told why."""
    reader, writer = await asyncio.open_connection("127.0.0.1", bridge.port)
    seconds, said = await closed_after(reader)
    assert HEAD * 0.8 < seconds < HEAD * 3
    assert said.startswith(b"HTTP/1.1 408")
    writer.close()


async def test_a_head_that_drips(bridge: Served) -> None:
    """A byte now and then does not help: the deadline is for the whole head."""
    reader, writer = await asyncio.open_connection("127.0.0.1", bridge.port)

    async def drip() -> None:
        for byte in b"GET /health HTTP/1.1\r\nX: " + b"y" * 1000:
            writer.write(bytes([byte]))
            await asyncio.sleep(HEAD / 20)

    dripping = asyncio.create_task(drip())
    seconds, _ = await closed_after(reader)
    assert seconds < HEAD * 3
    dripping.cancel()
    writer.close()


@pytest.mark.slow
async def test_only_an_idle_connection_is_closed() -> None:
    """The time counts from the last answer."""
    async with served(keep_alive_seconds=1.0) as bridge:
        reader, writer = await asyncio.open_connection("127.0.0.1", bridge.port)
        for _ in range(15):
            writer.write(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b"200" in await reader.readline()
            await reader.readuntil(b"}")
            await asyncio.sleep(0.1)
        async with asyncio.timeout(5):
            assert await reader.read() == b""
        writer.close()


@pytest.mark.slow
async def test_idle_between_requests(bridge: Served) -> None:
    """A connection that is kept alive may be idle for longer; its next head has the deadline again."""
    reader, writer = await asyncio.open_connection("127.0.0.1", bridge.port)
    request = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    for _ in range(2):
        writer.write(request)
        async with asyncio.timeout(2):
            assert b"200" in await reader.readline()
            await reader.readuntil(b"}")
        await asyncio.sleep(HEAD * 2.5)
    writer.write(request[:10])
    seconds, said = await closed_after(reader)
    assert seconds < HEAD * 3
    assert said.startswith(b"HTTP/1.1 408")
    writer.close()


@pytest.mark.slow
async def test_a_long_call_is_no_slow_head(bridge: Served) -> None:
    """While a request is worked on, its connection has no deadline."""
    opened, running = bridge.add_gate()
    session = await bridge.initialize()
    asking = asyncio.create_task(bridge.call(session, "wait"))
    await running()
    await asyncio.sleep(HEAD * 3)
    opened.set()
    assert (await asking)["content"][0]["text"] == "opened"


async def test_many_silent_connections_go(bridge: Served) -> None:
    """Half-open connections do not add up, and others are served meanwhile."""
    connections = [await asyncio.open_connection("127.0.0.1", bridge.port) for _ in range(100)]
    session = await bridge.initialize()
    assert (await bridge.call(session, "echo"))["content"][0]["text"] == "ok"
    async with asyncio.timeout(5):
        await asyncio.gather(*(reader.read() for reader, _ in connections))
    for _, writer in connections:
        writer.close()


async def test_a_body_that_breaks_off(bridge: Served) -> None:
    """A client that goes in the middle of a body leaves nothing behind."""
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nAccept: */*\r\n"
        "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
    )
    for _ in range(3):
        _, writer = await asyncio.open_connection("127.0.0.1", bridge.port)
        writer.write(head.encode())
        await asyncio.sleep(0.05)
        writer.transport.abort()
    session = await bridge.initialize()
    assert (await bridge.call(session, "echo"))["content"][0]["text"] == "ok"


@pytest.mark.slow
@pytest.mark.parametrize("streams", [False, pytest.param(True, marks=pytest.mark.slow)])
async def test_an_answer_that_nobody_reads(streams: bool) -> None:
    """The connection goes after a while, with a plain answer or a stream; slow readers are not hurt."""

    async def large(ctx: ToolContext, arguments: dict[str, Any]) -> str:
        if streams:
            ctx.log("error", "begin")
        await asyncio.sleep(0.01)
        return "x" * 9_000_000

    async with served(read_seconds=0.5) as bridge:
        bridge.editor.add_tool("large", large)
        session = await bridge.initialize()
        message = json.dumps(bridge.call_message("large"))
        head = (
            f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nAccept: */*\r\n"
            f"Mcp-Session-Id: {session}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(message)}\r\n\r\n"
        )
        slow, slow_writer = await asyncio.open_connection("127.0.0.1", bridge.port, limit=1000)
        slow_writer.write((head + message).encode())
        got = 0
        while got < 9_000_000:
            async with asyncio.timeout(5):
                got += len(await slow.read(400_000))
            await asyncio.sleep(0.01)
        lazy, lazy_writer = await asyncio.open_connection("127.0.0.1", bridge.port, limit=1000)
        lazy_writer.write((head + message).encode())
        await asyncio.sleep(1.5)
        got = 0
        try:
            while some := await lazy.read(1_000_000):
                got += len(some)
        except ConnectionError:
            pass
        assert got < 9_000_000
        for writer in (lazy_writer, slow_writer):
            writer.close()


async def test_a_body_that_never_comes(bridge: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused with 408 when its time is over."""
    monkeypatch.setattr(handlers, "BODY_SECONDS", 1.0)
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nAccept: */*\r\n"
        "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
    )
    reader, writer = await asyncio.open_connection("127.0.0.1", bridge.port)
    writer.write(head.encode())
    begin = time.monotonic()
    async with asyncio.timeout(handlers.BODY_SECONDS + 10):
        assert b"408" in await reader.readline()
    assert time.monotonic() - begin >= handlers.BODY_SECONDS - 1
    writer.close()


def post_bytes(session: str, message: dict[str, Any]) -> bytes:
    body = json.dumps(message).encode()
    head = [
        "POST /mcp HTTP/1.1",
        "Host: localhost",
        f"Authorization: Bearer {TOKEN}",
        f"Accept: {JSON_AND_SSE}",
        "Content-Type: application/json",
        f"Mcp-Session-Id: {session}",
        f"Content-Length: {len(body)}",
        "",
        "",
    ]
    return "\r\n".join(head).encode() + body


async def test_a_client_that_sends_no_more_gets_its_answer(bridge: Served) -> None:
    """One that closes its sending side after a request is answered, and the connection ends with that."""

    async def slow(ctx: ToolContext, arguments: dict[str, Any]) -> str:
        await asyncio.sleep(0.4)
        return "here it is"

    bridge.editor.add_tool("slow", slow)
    reader, writer = await asyncio.open_connection("127.0.0.1", bridge.port)
    writer.write(post_bytes(await bridge.initialize(), bridge.call_message("slow")))
    writer.write_eof()
    _, said = await closed_after(reader)
    assert b"here it is" in said
    writer.close()


@pytest.mark.slow
async def test_answers_that_nobody_reads_are_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """The longest silent connections are closed, although no other client waits for memory."""
    size = 8 * 1024 * 1024
    monkeypatch.setattr(listener, "MAX_UNREAD_BYTES", size)
    async with served() as bridge:
        bridge.editor.add_tool("one", lambda ctx, arguments: "ok", description="x" * size)
        session, unread = await bridge.initialize(), bridge.runner._deadlines.unread
        silent = [socket.create_connection(("127.0.0.1", bridge.port)) for _ in range(3)]
        for each in silent:
            each.sendall(post_bytes(session, bridge.message("tools/list")))
        await eventually(lambda: unread() > 2 * size)
        await eventually(lambda: unread() <= size)
        for each in silent:
            each.close()


async def test_connections_that_only_stand_are_bounded() -> None:
    """The oldest of those without the token is closed; a client that has shown it stays."""
    async with served(head_seconds=30.0) as bridge:
        bridge.editor.add_tool("echo", lambda ctx, arguments: "ok")
        session = await bridge.initialize()
        assert (await bridge.call(session, "echo"))["content"][0]["text"] == "ok"
        connections = [
            await asyncio.open_connection("127.0.0.1", bridge.port) for _ in range(MAX_UNAUTHENTICATED + 10)
        ]
        for reader, _ in connections[:10]:
            with contextlib.suppress(ConnectionError):
                async with asyncio.timeout(5):
                    assert await reader.read() == b""
        async with asyncio.timeout(5):
            assert (await bridge.call(session, "echo"))["content"][0]["text"] == "ok"
        for _, writer in connections:
            writer.close()


@pytest.mark.parametrize("token", ["", TOKEN], ids=["foreign", "client"])
async def test_a_body_that_is_not_encoded_as_it_says(
    bridge: Served, caplog: pytest.LogCaptureFixture, token: str
) -> None:
    """It is refused, and does not fill the log with traces, which nobody needs a token for."""
    reader, writer = await asyncio.open_connection("127.0.0.1", bridge.port)
    writer.write(
        f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{bridge.port}\r\nAuthorization: Bearer {token}\r\n"
        f"Accept: {JSON_AND_SSE}\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\n"
        "Content-Length: 2000\r\n\r\n".encode()
    )
    await writer.drain()
    await asyncio.sleep(0.05)
    writer.write(b"{}" * 1000)
    _, said = await closed_after(reader)
    assert said.startswith(b"HTTP/1.1 415" if token else b"HTTP/1.1 401")
    writer.close()
    assert not [record for record in caplog.records if record.exc_info], caplog.text
