"""Connections that do not get on: silent ones, slow heads, slow bodies."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from bridge.editor.memory import ToolContext
from bridge.transports import body
from tests.support.served import TOKEN, Served, served

HEAD = 0.5


@pytest.fixture
async def bridge() -> AsyncIterator[Served]:
    async with served(head_seconds=HEAD) as running:
        running.editor.add_tool("echo", lambda ctx, arguments: "ok")
        yield running


async def closed_after(reader: asyncio.StreamReader) -> tuple[float, bytes]:
    """Seconds until the server closes the connection, and what it said."""
    begin = time.monotonic()
    async with asyncio.timeout(10):
        said = await reader.read()
    return time.monotonic() - begin, said


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


def post(text: str, *more: str, chunked: bool = False) -> bytes:
    """A whole request with a body (it will be refused for its content, which is as good as any answer)."""
    lines = ["POST /mcp HTTP/1.1", "Host: localhost", f"Authorization: Bearer {TOKEN}", "Accept: */*", *more]
    body = f"{len(text):x}\r\n{text}\r\n0\r\n\r\n" if chunked else text
    lines.append("Transfer-Encoding: chunked" if chunked else f"Content-Length: {len(text)}")
    return "\r\n".join([*lines, "Content-Type: application/json", "", body]).encode()


GET = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
WHOLE = [GET, post("[1, 2]"), post("[1, 2]", chunked=True), post("[" + "1," * 100_000 + "2]")]


async def answer(reader: asyncio.StreamReader) -> bytes:
    """The status line of one answer; its body is read, too."""
    async with asyncio.timeout(20):
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
        await reader.readexactly(int(length.split(b":")[1]))
    return head.split(b"\r\n")[0]


@pytest.mark.parametrize("whole", WHOLE, ids=["get", "post", "chunked", "large"])
async def test_a_head_that_begins_with_the_end_of_another_request(bridge: Served, whole: bytes) -> None:
    """It has the same time as any head, also when nothing more than that ever comes."""

    async def send(rest: bytes) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", bridge.port)
        writer.write(whole + rest)
        assert b"408" not in await answer(reader)
        async with asyncio.timeout(20):
            assert (await reader.read()).startswith(b"HTTP/1.1 408")
        writer.close()

    await asyncio.gather(*map(send, (b"G", b"GET /health HTTP/1.1\r\n", GET[:-2], b"POST /mcp")))


@pytest.mark.parametrize("whole", WHOLE, ids=["get", "post", "chunked", "large"])
async def test_a_whole_request_leaves_no_head(bridge: Served, whole: bytes) -> None:
    """However it is cut into parts, the connection is idle after it, and has no deadline of a head."""

    async def send(parts: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", bridge.port)
        size = -(-len(whole) // parts)
        for begin in range(0, len(whole), size):
            writer.write(whole[begin : begin + size])
            await writer.drain()
            await asyncio.sleep(0.01)
        assert b"408" not in await answer(reader)
        await asyncio.sleep(HEAD * 2)
        writer.write(GET)
        assert b"200" in await answer(reader)
        writer.close()

    await asyncio.gather(*map(send, (1, 2, 7)))


async def test_a_head_in_parts_after_another_request(bridge: Served) -> None:
    """The part that came early belongs to it: the request is answered, and idle time begins after it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", bridge.port)
    for cut in (1, len(GET) - 1, len(GET) - 3):
        writer.write(GET + GET[:cut])
        assert b"200" in await answer(reader)
        writer.write(GET[cut:])
        assert b"200" in await answer(reader)
    await asyncio.sleep(HEAD * 2)
    writer.write(GET + GET)
    for _ in range(2):
        assert b"200" in await answer(reader)
    writer.close()


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


@pytest.mark.parametrize("streams", [False, True])
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


@pytest.mark.slow
async def test_a_body_that_never_comes(bridge: Served) -> None:
    """After half a minute it is 408."""
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nAccept: */*\r\n"
        "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
    )
    reader, writer = await asyncio.open_connection("127.0.0.1", bridge.port)
    writer.write(head.encode())
    begin = time.monotonic()
    async with asyncio.timeout(body.BODY_SECONDS + 10):
        assert b"408" in await reader.readline()
    assert time.monotonic() - begin >= body.BODY_SECONDS - 1
    writer.close()
