"""Requests that repeat a head: taken without being parsed anew, and answered as if they had been."""

from __future__ import annotations

import asyncio
import json
import random
import re
import time
from collections.abc import AsyncIterator, Coroutine
from typing import Any

import pytest
from aiohttp import web

from bridge.http.repeat import Repeats, read_head
from tests.support.memory import ToolContext
from tests.support.served import TOKEN, Served, served

HEAD = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\nX: y\r\n\r\n"


def request(body: str, head: str = HEAD) -> bytes:
    """As a client sends it."""
    return (head.format(len(body)) + body).encode()


async def _nothing() -> bool:
    return True


class Taken:
    """A connection on which every request is answered at once, unless `answered` is off."""

    def __init__(self) -> None:
        self.repeats = Repeats()
        self.all = b""
        self.served: list[bytes] = []
        self.admits = True

    def serve(self, body: bytes) -> Coroutine[Any, Any, bool] | None:
        """Takes a body."""
        if not self.admits:
            return None
        self.served.append(body)
        self.all += request(body.decode())
        return _nothing()

    def send(self, data: bytes, idle: bool = True) -> bytes:
        """What aiohttp gets of it."""
        rest, serving = self.repeats.take(data, idle)
        if serving is not None:
            assert rest == b""
            serving.close()
        self.all += rest
        return rest

    def begin(self) -> None:
        """The first request, which the guards let in."""
        assert self.send(request("first"))
        self.repeats.admit(self.serve)


def test_the_same_head_again() -> None:
    """Also with a longer body; aiohttp sees nothing of it."""
    taken = Taken()
    taken.begin()
    assert [taken.send(request("x" * size)) for size in (5, 9, 10, 0, 100_000)] == [b""] * 5
    assert [len(body) for body in taken.served] == [5, 9, 10, 0, 100_000]


def test_head_and_body_apart() -> None:
    """Many clients send them so; a body in more pieces is aiohttp's."""
    taken = Taken()
    taken.begin()
    whole = request("abcdef")
    assert taken.send(whole[:-6]) == taken.send(whole[-6:]) == b""
    assert taken.served == [b"abcdef"]
    assert taken.send(whole[:-6]) == b""
    assert taken.send(whole[-6:-3]) == whole[:-3]
    assert taken.send(whole[-3:], idle=False) == whole[-3:]
    assert taken.send(whole) == b""


def test_a_rest_that_does_not_come() -> None:
    """What was kept is given to aiohttp, whose deadlines count from then on."""
    taken = Taken()
    taken.begin()
    whole = request("abcdef")
    taken.send(whole[:-6])
    assert taken.repeats.release() == whole[:-6]
    assert taken.repeats.release() == b""
    assert taken.send(whole[-6:], idle=False) == whole[-6:]
    assert taken.send(whole) == b""


@pytest.mark.parametrize(
    "head",
    [
        HEAD.replace("X: y", "X: z"),
        HEAD.replace("/mcp", "/mcq"),
        HEAD.replace("X: y", "X: y\r\nX: y"),
        HEAD.replace("X: y\r\n", ""),
        HEAD.replace("{}", "0{}") + " ",
        HEAD.replace("{}", "+{}"),
        HEAD.replace("{}", "{}, {}"),
        HEAD.replace("\r\nX: y", "\nX: y"),
        HEAD.replace("POST", " POST"),
        HEAD.replace("X: y", "Transfer-Encoding: chunked"),
        HEAD.replace("X: y", "content-length: 3"),
    ],
)
def test_another_head(head: str) -> None:
    """Whatever differs is aiohttp's to judge."""
    taken = Taken()
    taken.begin()
    other = request("x" * 11, head.replace("{}, {}", "{0}, {0}"))
    assert taken.send(other) == other
    assert not taken.served


@pytest.mark.parametrize(
    "head",
    [
        HEAD.replace("X: y", "Transfer-Encoding: chunked"),
        HEAD.replace("X: y", "content-length: 5"),
        HEAD.replace("Content-Length: {}\r\n", ""),
        HEAD.replace("Content-Length: ", "Content-Length:"),
        HEAD.replace("{}", "000000005"),
        "GET / HTTP/1.1\r\n",
    ],
)
def test_heads_that_cannot_be_repeated(head: str) -> None:
    """How long their body is takes a parser."""
    assert read_head(request("first", head)) is None
    taken = Taken()
    taken.send(request("first", head))
    taken.repeats.admit(taken.serve)
    whole = request("first", head)
    assert taken.send(whole) == whole


def test_requests_that_do_not_wait() -> None:
    """Nobody knows any more where one ends; aiohttp gets all that follows, for good."""
    for early in (request("first") * 2, request("first") + b"POST"):
        taken = Taken()
        taken.begin()
        assert taken.send(early) == early
        assert taken.send(request("next")) == request("next")
    taken = Taken()
    taken.begin()
    assert taken.send(request("busy"), idle=False) == request("busy")
    assert taken.send(request("next")) == request("next")
    assert not taken.served


def test_no_longer_admitted() -> None:
    """The guards are to look again, and may let it in again."""
    taken = Taken()
    taken.begin()
    taken.admits = False
    assert taken.send(request("a")) == request("a")
    taken.admits = True
    assert taken.send(request("b")) == request("b")
    taken.repeats.admit(taken.serve)
    assert taken.send(request("c")) == b""


def test_any_pieces() -> None:
    """However it is cut, each byte goes one way, in order, and only whole bodies are served."""
    for seed in range(300):
        chance = random.Random(seed)
        taken = Taken()
        taken.begin()
        bodies = ["b" * chance.randrange(30) for _ in range(6)]
        wire = b"".join(request(body) for body in bodies)
        at = 0
        while at < len(wire):
            size = chance.choice([1, 7, len(request(bodies[0])), 60, 200])
            taken.send(wire[at : at + size])
            at += size
        assert taken.all + taken.repeats.release() == request("first") + wire
        assert all(re.fullmatch(b"b*", body) for body in taken.served)


@pytest.fixture
async def bridge() -> AsyncIterator[Served]:
    async with served() as running:
        running.editor.add_tool("echo", lambda ctx, arguments: arguments["text"])
        yield running


class Client:
    """One connection, raw."""

    def __init__(self, bridge: Served, session: str) -> None:
        self._bridge = bridge
        self._session = session

    async def __aenter__(self) -> Client:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self._bridge.port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()

    def call(self, text: str, tool: str = "echo", token: str = TOKEN, **meta: Any) -> bytes:
        """A request."""
        message = self._bridge.call_message(tool, {"text": text}, **meta)
        body = json.dumps(message).encode()
        head = (
            f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
            f"Mcp-Session-Id: {self._session}\r\nAccept: application/json, text/event-stream\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body

    async def answer(self) -> tuple[int, str]:
        """Status and body of the next one."""
        async with asyncio.timeout(5):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode().lower()
            status = int(head.split(" ", 2)[1])
            if "transfer-encoding: chunked" not in head:
                size = int(re.search(r"content-length: (\d+)", head)[1])  # type: ignore[index]
                return status, (await self.reader.readexactly(size)).decode()
            body = b""
            while size := int(await self.reader.readline(), 16):
                body += await self.reader.readexactly(size)
                await self.reader.readline()
            await self.reader.readline()
            return status, body.decode()


@pytest.fixture
async def client(bridge: Served) -> AsyncIterator[Client]:
    async with Client(bridge, await bridge.initialize()) as connected:
        connected.writer.write(connected.call("first"))
        assert "first" in (await connected.answer())[1]
        yield connected


def parsed(bridge: Served) -> int:
    """How many requests aiohttp has read."""
    return int(web.ServerRunner.server.fget(bridge.runner).requests_count)  # type: ignore[attr-defined]


async def test_answers_one_after_the_other(bridge: Served, client: Client) -> None:
    """In one write and in two."""
    before = parsed(bridge)
    for text in ("a", "b" * 9000, "ü"):
        client.writer.write(client.call(text))
        assert json.dumps(text, ensure_ascii=False)[1:-1] in (await client.answer())[1]
        whole = client.call(text)
        head, body = whole.split(b"\r\n\r\n", 1)
        client.writer.write(head + b"\r\n\r\n")
        await client.writer.drain()
        await asyncio.sleep(0.02)
        client.writer.write(body)
        assert (await client.answer())[0] == 200
    assert parsed(bridge) == before


async def test_a_stream_for_a_repeated_request(bridge: Served, client: Client) -> None:
    """Progress makes a stream of the response; the next request on the connection is served as well."""

    async def steps(ctx: ToolContext, arguments: dict[str, Any]) -> str:
        ctx.progress(1, 2, "half")
        await asyncio.sleep(0.05)
        return "whole"

    bridge.editor.add_tool("steps", steps)
    before = parsed(bridge)
    for _ in range(2):
        client.writer.write(client.call("x", "steps", progressToken="p"))
        status, body = await client.answer()
        assert status == 200
        assert '"half"' in body
        assert "whole" in body
        client.writer.write(client.call("after"))
        assert "after" in (await client.answer())[1]
    assert parsed(bridge) == before


async def test_several_at_once(bridge: Served, client: Client) -> None:
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


async def test_what_comes_while_one_is_worked_on(bridge: Served, client: Client) -> None:
    """It waits for its turn, in whatever pieces."""
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


async def test_a_wrong_token_after_a_right_one(client: Client) -> None:
    """Another token is another head."""
    client.writer.write(client.call("x", token="0" * len(TOKEN)))
    assert (await client.answer())[0] == 401


async def test_a_token_that_is_no_longer_valid(bridge: Served, client: Client) -> None:
    """The same head is refused from then on."""
    bridge.parts.token.value = "f" * len(TOKEN)
    client.writer.write(client.call("x"))
    assert (await client.answer())[0] == 401


async def test_bad_bodies(client: Client) -> None:
    """They are told as ever, and the connection goes on."""
    whole = client.call("x")
    head, body = whole.split(b"\r\n\r\n", 1)
    client.writer.write(head + b"\r\n\r\n" + b"{" * len(body))
    status, said = await client.answer()
    assert status == 400
    assert "-32700" in said
    client.writer.write(client.call("after"))
    assert "after" in (await client.answer())[1]


async def test_a_client_that_goes(bridge: Served, client: Client) -> None:
    """Its call ends as that of any other; nothing is left of it."""
    opened, running = bridge.add_gate()
    client.writer.write(client.call("", "wait"))
    await running()
    client.writer.transport.abort()
    await asyncio.sleep(0.05)
    opened.set()
    session = await bridge.initialize()
    assert (await bridge.call(session, "echo", {"text": "ok"}))["content"][0]["text"] == "ok"


@pytest.mark.slow
async def test_connections_that_are_idle_for_long_are_closed() -> None:
    """It counts from the last answer, whoever read the request."""
    async with served(keep_alive_seconds=1.0) as bridge:
        bridge.editor.add_tool("echo", lambda ctx, arguments: "ok")
        async with Client(bridge, await bridge.initialize()) as client:
            begin = time.monotonic()
            while time.monotonic() - begin < 1.5:
                client.writer.write(client.call("x"))
                assert (await client.answer())[0] == 200
                await asyncio.sleep(0.1)
            async with asyncio.timeout(5):
                assert await client.reader.read() == b""
