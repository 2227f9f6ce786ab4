"""Event streams: order, limits, resumption."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import aiohttp
import pytest
from aiohttp import web

from mcp_tools_nvim.http.response import attach, write_stream
from mcp_tools_nvim.sessions.streams import (
    KEPT_EVENTS,
    UNSENT_BYTES,
    UNSENT_HARD,
    UNSENT_SOFT,
    EventIds,
    Outbox,
)
from tests.support.served import bare, eventually

Serve = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Page:
    """A server whose handler is set by the test."""

    handler: Serve
    url = ""


@pytest.fixture
async def page() -> AsyncIterator[Page]:
    made = Page()

    async def handle(request: web.Request) -> web.StreamResponse:
        return await made.handler(request)

    async with bare(handle) as made.url:
        yield made


async def read(page: Page, stream: Outbox, after: int | None = None) -> str:
    """The whole answer to one request."""
    page.handler = lambda request: write_stream(stream, request, attach(stream, request), after=after)
    async with aiohttp.ClientSession() as http, http.get(page.url) as response:
        return await response.text()


def numbers(text: str) -> list[str]:
    return [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]


async def test_messages_are_sent_once_in_order_until_the_stream_ends(page: Page) -> None:
    stream = Outbox()
    for n in range(10):
        stream.push(str(n).encode())
    stream.end()
    assert numbers(await read(page, stream)) == [str(n) for n in range(10)]
    assert numbers(await read(page, stream)) == []


async def test_a_stream_is_resumed_after_any_kept_event(page: Page) -> None:
    ids = EventIds("boot")
    stream = Outbox(ids)
    other = Outbox(ids)
    for n in range(5):
        stream.push(str(n).encode())
        other.push(b"other")
    stream.end()
    text = await read(page, stream)
    known = [ids.read(line.removeprefix("id: ")) for line in text.splitlines() if line.startswith("id: ")]
    assert len(known) == 5
    for n, number in enumerate(known):
        assert number is not None
        assert stream.knows(number)
        assert not other.knows(number)
        assert numbers(await read(page, stream, number)) == [str(m) for m in range(n + 1, 5)]
    assert ids.read("boot-x") is None
    assert ids.read("toob-1") is None


def test_an_event_id_names_the_requests_of_its_stream() -> None:
    """Request ids that are too long for a header are omitted."""
    ids = EventIds("boot")
    for asked in ([1, "a"], ["x" * 2500]):
        text = ids.write(1, asked)
        assert len(text) < 8190
        assert EventIds.request_ids(text) == asked
    assert EventIds.request_ids(ids.write(1, ["x" * 100_000])) == []


async def test_kept_events_are_limited_by_number_and_size() -> None:
    """The newest is always kept."""
    ids = EventIds("boot")
    stream = Outbox(ids)
    first = ids.next() + 1
    for _ in range(KEPT_EVENTS + 1):
        stream.push(b"x")
    last = ids.next() - 1
    assert stream.knows(last - KEPT_EVENTS)
    assert not stream.knows(first - 3)
    for _ in range(5):
        stream.push(b"x" * 1024 * 1024)
    assert len(stream._kept) == 1
    stream.push(b"x" * 10 * 1024 * 1024)
    assert len(stream._kept) == 1


async def test_unsent_events_are_limited() -> None:
    """Droppable events are dropped first, then the oldest; a key is queued once."""
    stream = Outbox()
    stream.push(b"first")
    for n in range(1000):
        stream.push(str(n).encode(), droppable=True)
    assert len(stream._unsent) == UNSENT_SOFT
    assert stream._unsent[0].data == b"first"
    assert stream._unsent[-1].data == b"999"
    for n in range(1000):
        stream.push(str(n).encode())
    assert len(stream._unsent) == UNSENT_HARD
    stream = Outbox()
    for _ in range(3):
        stream.push(b"changed", key="changed")
    assert len(stream._unsent) == 1


async def test_a_new_reader_replaces_the_earlier_one(page: Page) -> None:
    stream = Outbox(EventIds("boot"))
    page.handler = lambda request: write_stream(stream, request, attach(stream, request))
    async with aiohttp.ClientSession() as http:
        first = await http.get(page.url)
        assert stream.alive
        second = await http.get(page.url)
        assert (await first.text()) == ""
        stream.push(b"only once")
        stream.end()
        assert numbers(await second.text()) == ["only once"]
    await eventually(lambda: not stream.alive)


async def test_a_reader_that_stops_reading_loses_its_response(page: Page) -> None:
    stream = Outbox(EventIds("boot"))
    page.handler = lambda request: write_stream(stream, request, attach(stream, request))
    port = int(page.url.rsplit(":", 1)[1].rstrip("/"))
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
    writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await reader.readline()
    for n in range(UNSENT_HARD * 3):
        if stream.alive:
            stream.push(b"%d" % n + b"x" * 100_000)
            await asyncio.sleep(0)
    assert not stream.alive
    assert len(stream._unsent) <= UNSENT_HARD + 1
    stream.end()
    text = await read(page, stream)
    assert len(numbers(text)) > 10
    with contextlib.suppress(ConnectionError):
        writer.close()


async def test_unsent_bytes_are_limited() -> None:
    """Without a reader the oldest events are dropped; a slow reader is disconnected first."""
    outbox, piece = Outbox(), b"x" * (UNSENT_BYTES // 8)
    for _ in range(40):
        outbox.push(piece)
    assert outbox._unsent_bytes <= UNSENT_BYTES
    reader = outbox.attach(lambda: True)
    for _ in range(40):
        outbox.push(piece)
        assert outbox._unsent_bytes <= UNSENT_BYTES + len(piece)
    assert not outbox.is_current(reader)
    outbox.push(b"y" * (2 * UNSENT_BYTES))
    event = await outbox.next(outbox.attach(lambda: True), 1)
    assert event.data[:1] == b"y"


async def test_the_latest_event_of_a_key_replaces_those_that_wait() -> None:
    stream = Outbox()
    reader = stream.attach(lambda: True)
    for n, key in enumerate(("a", "a", "b", None, "a")):
        stream.push(str(n).encode(), key=key, latest=True)
    for expected in (b"0", b"2", b"3", b"4"):
        event = await stream.next(reader, 1)
        assert event.data == expected
        stream.wrote(reader, event)
    assert stream._unsent_bytes == 0
    stream.leave(reader)
    for n in range(1000):
        stream.push(str(n).encode(), key="a", latest=True)
    assert [event.data for event in stream._unsent] == [b"999"]
