"""Deadlines and limits of connections: silent ones, slow heads, slow bodies, unread answers."""

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
from tests.support import tcp
from tests.support.memory import reporting
from tests.support.served import TOKEN, Served, eventually, served

HEAD = 0.5
HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


def post(bridge: Served, session: str, message: dict[str, Any]) -> bytes:
    return tcp.request(bridge, json.dumps(message).encode(), f"Mcp-Session-Id: {session}")


async def check_served(bridge: Served) -> None:
    """Another client is served."""
    assert (await bridge.call(await bridge.initialize(), "echo"))["content"][0]["text"] == "ok"


@pytest.fixture
async def bridge() -> AsyncIterator[Served]:
    async with served(head_seconds=HEAD) as running:
        running.editor.add_tool("echo", lambda ctx, arguments: "ok")
        yield running


async def closed_after(reader: asyncio.StreamReader) -> tuple[float, bytes]:
    """Seconds until the server closes the connection, and what it sent."""
    begin, received = time.monotonic(), b""
    async with asyncio.timeout(10):
        # Data that is in flight when the server closes resets the connection.
        with contextlib.suppress(ConnectionResetError):
            while data := await reader.read(1 << 16):
                received += data
    return time.monotonic() - begin, received


@pytest.mark.slow
async def test_a_silent_connection_gets_408_after_the_deadline_for_its_head(bridge: Served) -> None:
    async with bridge.connection() as (reader, _):
        seconds, received = await closed_after(reader)
    assert HEAD * 0.8 < seconds < HEAD * 3
    assert received.startswith(b"HTTP/1.1 408")


async def test_a_slow_head_does_not_extend_the_deadline(bridge: Served) -> None:
    async with bridge.connection() as (reader, writer):

        async def drip() -> None:
            for byte in b"GET /health HTTP/1.1\r\nX: " + b"y" * 1000:
                writer.write(bytes([byte]))
                await asyncio.sleep(HEAD / 20)

        dripping = asyncio.create_task(drip())
        seconds, _ = await closed_after(reader)
        assert seconds < HEAD * 3
        dripping.cancel()


@pytest.mark.slow
async def test_idle_time_starts_at_the_last_answer() -> None:
    async with served(keep_alive_seconds=1.0) as bridge, bridge.connection() as (reader, writer):
        for _ in range(15):
            writer.write(HEALTH)
            assert b"200" in await reader.readline()
            await reader.readuntil(b"}")
            await asyncio.sleep(0.1)
        async with asyncio.timeout(10):
            assert await reader.read() == b""


@pytest.mark.slow
async def test_a_connection_may_be_idle_and_each_head_has_its_deadline(bridge: Served) -> None:
    async with bridge.connection() as (reader, writer):
        for _ in range(2):
            writer.write(HEALTH)
            async with asyncio.timeout(10):
                assert b"200" in await reader.readline()
                await reader.readuntil(b"}")
            await asyncio.sleep(HEAD * 2.5)
        writer.write(HEALTH[:10])
        seconds, received = await closed_after(reader)
    assert seconds < HEAD * 3
    assert received.startswith(b"HTTP/1.1 408")


@pytest.mark.slow
async def test_a_connection_has_no_deadline_while_a_call_runs(bridge: Served) -> None:
    opened, running = bridge.add_gate()
    session = await bridge.initialize()
    asking = asyncio.create_task(bridge.call(session, "wait"))
    await running()
    await asyncio.sleep(HEAD * 3)
    opened.set()
    assert (await asking)["content"][0]["text"] == "opened"


async def test_many_silent_connections_are_closed_and_others_are_served(bridge: Served) -> None:
    async with contextlib.AsyncExitStack() as stack:
        connections = [await stack.enter_async_context(bridge.connection()) for _ in range(100)]
        await check_served(bridge)
        async with asyncio.timeout(10):
            await asyncio.gather(*(reader.read() for reader, _ in connections))


async def test_an_aborted_body_leaves_nothing_behind(bridge: Served) -> None:
    for _ in range(3):
        async with bridge.connection() as (_, writer):
            writer.write(tcp.request(bridge, b"{", Content_Length=100))
            await asyncio.sleep(0.05)
            writer.transport.abort()
    await check_served(bridge)


@pytest.mark.slow
@pytest.mark.parametrize("streams", [False, True])
async def test_an_unread_answer_closes_its_connection_and_a_slow_reader_gets_it_all(streams: bool) -> None:
    size, reports = 9_000_000, [("error", "begin")] if streams else []
    async with served(read_seconds=0.5) as bridge:
        bridge.editor.add_tool("large", reporting(*reports, result="x" * size, seconds=0.01))
        request = post(bridge, await bridge.initialize(), bridge.call_message("large"))
        async with bridge.connection(limit=1000) as (slow, slow_writer):
            slow_writer.write(request)
            got = 0
            while got < size:
                async with asyncio.timeout(10):
                    got += len(await slow.read(400_000))
                await asyncio.sleep(0.01)
        async with bridge.connection(limit=1000) as (lazy, lazy_writer):
            lazy_writer.write(request)
            await asyncio.sleep(1.5)
            _, received = await closed_after(lazy)
        assert len(received) < size


@pytest.mark.slow
async def test_a_missing_body_is_refused_with_408(bridge: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handlers, "BODY_SECONDS", 1.0)
    async with bridge.connection() as (reader, writer):
        writer.write(tcp.request(bridge, b"{", Content_Length=100))
        begin = time.monotonic()
        async with asyncio.timeout(handlers.BODY_SECONDS + 10):
            assert b"408" in await reader.readline()
        assert time.monotonic() - begin >= handlers.BODY_SECONDS - 1


async def test_a_half_closed_connection_gets_its_answer(bridge: Served) -> None:
    bridge.editor.add_tool("slow", reporting(result="here it is", seconds=0.4))
    async with bridge.connection() as (reader, writer):
        writer.write(post(bridge, await bridge.initialize(), bridge.call_message("slow")))
        writer.write_eof()
        _, received = await closed_after(reader)
    assert b"here it is" in received


@pytest.mark.slow
async def test_unread_answers_share_one_limit_of_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    size = 8 * 1024 * 1024
    monkeypatch.setattr(listener, "MAX_UNREAD_BYTES", size)
    async with served() as bridge:
        bridge.editor.add_tool("one", lambda ctx, arguments: "ok", description="x" * size)
        session, unread = await bridge.initialize(), bridge.runner._deadlines.unread
        silent = [socket.create_connection(("127.0.0.1", bridge.port)) for _ in range(3)]
        for each in silent:
            each.sendall(post(bridge, session, bridge.message("tools/list")))
        await eventually(lambda: unread() > 2 * size)
        await eventually(lambda: unread() <= size)
        for each in silent:
            each.close()


async def test_connections_without_a_token_are_limited_and_others_stay() -> None:
    async with served(head_seconds=30.0) as bridge, contextlib.AsyncExitStack() as stack:
        bridge.editor.add_tool("echo", lambda ctx, arguments: "ok")
        session = await bridge.initialize()
        assert (await bridge.call(session, "echo"))["content"][0]["text"] == "ok"
        count = MAX_UNAUTHENTICATED + 10
        readers = [(await stack.enter_async_context(bridge.connection()))[0] for _ in range(count)]
        async with asyncio.timeout(10):
            for reader in readers[:10]:
                with contextlib.suppress(ConnectionError):
                    assert await reader.read() == b""
            assert (await bridge.call(session, "echo"))["content"][0]["text"] == "ok"


@pytest.mark.parametrize("token", ["", TOKEN], ids=["foreign", "client"])
async def test_encoded_body_is_refused(bridge: Served, caplog: pytest.LogCaptureFixture, token: str) -> None:
    fields = {"Authorization": f"Bearer {token}", "Content_Encoding": "gzip"}
    async with bridge.connection() as (reader, writer):
        writer.write(tcp.request(bridge, Content_Length=2000, **fields))
        await writer.drain()
        await asyncio.sleep(0.05)
        writer.write(b"{}" * 1000)
        _, received = await closed_after(reader)
    assert received.startswith(b"HTTP/1.1 415" if token else b"HTTP/1.1 401")
    assert not [record for record in caplog.records if record.exc_info], caplog.text
