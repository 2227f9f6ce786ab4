"""Several requests on one connection: each is answered, and in order."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.memory import ToolContext
from tests.support.served import TOKEN, Served, served


class Client:
    """One connection, raw."""

    def __init__(self, bridge: Served, session: str) -> None:
        self._bridge = bridge
        self.session = session

    async def __aenter__(self) -> Client:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self._bridge.port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()

    def call(self, text: str, tool: str = "echo", token: str = TOKEN, header: str = "", **meta: Any) -> bytes:
        """A request; `header` is one more line of its head."""
        body = json.dumps(self._bridge.call_message(tool, {"text": text}, **meta)).encode()
        head = (
            f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n{header}"
            f"Mcp-Session-Id: {self.session}\r\nAccept: application/json, text/event-stream\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body

    async def answer(self) -> tuple[int, str]:
        """Status and body of the next answer."""
        async with asyncio.timeout(5):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode().lower()
            status = int(head.split(" ", 2)[1])
            if "transfer-encoding: chunked" not in head:
                length = re.search(r"content-length: (\d+)", head)
                assert length
                return status, (await self.reader.readexactly(int(length[1]))).decode()
            body = b""
            while size := int(await self.reader.readline(), 16):
                body += await self.reader.readexactly(size)
                await self.reader.readline()
            await self.reader.readline()
            return status, body.decode()


@pytest.fixture
async def bridge() -> AsyncIterator[Served]:
    async with served(keep_alive_seconds=1.0) as running:
        running.editor.add_tool("echo", lambda ctx, arguments: arguments["text"])
        yield running


@pytest.fixture
async def client(bridge: Served) -> AsyncIterator[Client]:
    """A connection that was let in already."""
    async with Client(bridge, await bridge.initialize()) as connected:
        connected.writer.write(connected.call("first"))
        assert "first" in (await connected.answer())[1]
        yield connected


async def test_a_quick_call_waits_for_the_slow_one_before_it(bridge: Served, client: Client) -> None:
    """Also if its head is known already, that of the slow one is new, and it has a segment of its own."""

    async def slow(ctx: ToolContext, arguments: dict[str, Any]) -> str:
        await asyncio.sleep(0.005)
        return "slow"

    bridge.editor.add_tool("slow", slow)
    call = client.call

    def texts(pause: float) -> list[str]:
        """What is answered on one connection; sent and read beside the loop, so that segments stay apart."""
        with socket.create_connection(("127.0.0.1", bridge.port), timeout=5) as sock:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for _ in range(2):
                sock.sendall(call("known"))
                sock.recv(1 << 16)
            sock.sendall(call("", "slow", header="X-New: 1\r\n"))
            time.sleep(pause)
            sock.sendall(call("quick"))
            said = b""
            while said.count(b'"result"') < 2:
                said += sock.recv(1 << 16)
        return re.findall(r'"text":"(\w+)"', said.decode())

    for number in range(200):
        assert await asyncio.to_thread(texts, number % 20 / 40_000) == ["slow", "quick"]


async def test_several_requests_in_one_write(bridge: Served, client: Client) -> None:
    """They are answered in their order, each once."""
    opened, _ = bridge.add_gate()
    client.writer.write(client.call("1"))
    last = client.call("3")
    client.writer.write(client.call("", "wait") + client.call("2") + last[:40])
    assert '"1"' in (await client.answer())[1]
    await asyncio.sleep(0.05)
    opened.set()
    assert "opened" in (await client.answer())[1]
    assert '"2"' in (await client.answer())[1]
    client.writer.write(last[40:])
    assert '"3"' in (await client.answer())[1]


async def test_requests_that_come_while_one_is_worked_on(bridge: Served, client: Client) -> None:
    """They wait for their turn, in whatever pieces they come."""
    opened, running = bridge.add_gate()
    client.writer.write(client.call("", "wait"))
    await running()
    later = b"".join(client.call(f"later {i}") for i in range(50))
    for at in range(0, len(later), 5000):
        client.writer.write(later[at : at + 5000])
        await asyncio.sleep(0)
    await asyncio.sleep(0.05)
    opened.set()
    assert "opened" in (await client.answer())[1]
    for i in range(50):
        assert f"later {i}" in (await client.answer())[1]


async def test_a_stream_between_two_answers(bridge: Served, client: Client) -> None:
    """Progress makes a stream of a response; the next request on the connection is served as well."""

    async def steps(ctx: ToolContext, arguments: dict[str, Any]) -> str:
        ctx.progress(1, 2, "half")
        await asyncio.sleep(0.05)
        return "whole"

    bridge.editor.add_tool("steps", steps)
    for _ in range(2):
        client.writer.write(client.call("x", "steps", progressToken="p"))
        status, body = await client.answer()
        assert status == 200
        assert '"half"' in body
        assert "whole" in body
        client.writer.write(client.call("after"))
        assert "after" in (await client.answer())[1]


async def test_the_end_of_what_a_client_sends(bridge: Served, client: Client) -> None:
    """It has its answer, and the connection ends with that."""
    opened, running = bridge.add_gate()
    client.writer.write(client.call("", "wait"))
    client.writer.write_eof()
    await running()
    await asyncio.sleep(0.1)
    opened.set()
    assert "opened" in (await client.answer())[1]
    async with asyncio.timeout(5):
        assert await client.reader.read() == b""


async def test_each_request_shows_a_valid_token(bridge: Served, client: Client) -> None:
    """One that is no longer valid is refused on a connection that was let in."""
    client.writer.write(client.call("x"))
    assert (await client.answer())[0] == 200
    client.writer.write(client.call("x").replace(TOKEN.encode(), b"f" * len(TOKEN)))
    assert (await client.answer())[0] == 401


async def test_a_bad_body_leaves_the_connection_open(bridge: Served, client: Client) -> None:
    """The next request is served."""
    whole = client.call("x")
    head, body = whole.split(b"\r\n\r\n", 1)
    client.writer.write(head + b"\r\n\r\n" + b"{" * len(body))
    status, text = await client.answer()
    assert status == 400
    assert "-32700" in text
    client.writer.write(client.call("after"))
    assert "after" in (await client.answer())[1]


@pytest.mark.slow
async def test_only_an_idle_connection_is_closed(bridge: Served, client: Client) -> None:
    """The time counts from the last answer."""
    now = asyncio.get_running_loop().time
    began = now()
    while now() - began < 1.5:
        client.writer.write(client.call("x"))
        assert (await client.answer())[0] == 200
        await asyncio.sleep(0.1)
    async with asyncio.timeout(5):
        assert await client.reader.read() == b""
