"""Connections used in ways that no good client does: slow, half open, pipelined, or smuggling."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.support.bridge import Bridge
from tests.support.raw import Raw
from tests.support.tcp import ping, read, request, talk

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.slow
async def test_keep_alive(shared: Bridge, client: Raw) -> None:
    """A connection serves one request after the other, refused ones among them."""
    reader, writer = await asyncio.open_connection("127.0.0.1", shared.port)
    try:
        for n in range(50):
            body, session = ping(client.session, n)
            refused = n % 5 == 4
            writer.write(request(shared, body, "Mcp-Session-Id: x" if refused else session))
            async with asyncio.timeout(3):
                answer = await read(reader)
            assert answer
            assert answer.status == (404 if refused else 200)
            assert refused or answer.json["id"] == n
    finally:
        writer.close()


async def test_pipelining(shared: Bridge, client: Raw) -> None:
    """Requests sent without waiting are answered all and in their order, also behind a slow one."""
    slow = client.call_message("later", {"ms": 200, "value": "slow"}) | {"id": 0}
    parts = [request(shared, json.dumps(slow).encode(), f"Mcp-Session-Id: {client.session}")]
    parts += [request(shared, *ping(client.session, n)) for n in range(1, 30)]
    answers = await talk(shared, b"".join(parts), answers=30)
    assert [answer.json["id"] for answer in answers] == list(range(30))


async def test_byte_by_byte(shared: Bridge, client: Raw) -> None:
    """However the bytes are cut, the request is understood."""
    data = request(shared, *ping(client.session))
    (answer,) = await talk(shared, *(data[n : n + 1] for n in range(len(data))), answers=1)
    assert answer.status == 200


SMUGGLED = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n"


@pytest.mark.parametrize(
    "lines",
    [
        ["Content-Length: 5"],
        ["Content-Length: {length}"],
        ["Transfer-Encoding: chunked"],
        ["Transfer-Encoding: chunked, identity"],
        ["Transfer-Encoding: xchunked"],
        ["Transfer-Encoding : chunked"],
        ["Content-Length : 5"],
        [" folded: yes"],
        ["X: a\rContent-Length: 0"],
        ["X-\0: a"],
        ["no colon"],
        [": no name"],
    ],
    ids=lambda lines: lines[0].strip(),
)
async def test_heads_of_two_minds(shared: Bridge, client: Raw, lines: list[str]) -> None:
    """A request whose end two readers could see in different places is refused, with all that follows."""
    mark = json.dumps(client.call_message("mark")).encode()
    extra = [line.format(length=len(mark)) for line in lines]
    data = request(shared, mark, f"Mcp-Session-Id: {client.session}", *extra)
    answers = await talk(shared, data + SMUGGLED)
    assert answers[0].status == 400
    assert len(answers) == 1, "the rest was taken for a request"
    assert await shared.nvim.lua("return Seen.late") == 0


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 64,
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\r\n\r\n",
        b"\0" * 1000,
        b"hello\r\n\r\n",
        bytes(range(256)) * 8,
        b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
    ids=["TLS", "HTTP/2", "HTTP/9.9", "HTTP/0.9", "zeros", "text", "bytes", "bad chunk"],
)
async def test_no_http(shared: Bridge, client: Raw, data: bytes) -> None:
    """Something else than HTTP is refused and told nothing; the next client is served."""
    for answer in await talk(shared, data):
        assert 400 <= answer.status < 500
        assert b"Traceback" not in answer.body
    assert (await client.send(client.message("ping")))[0] == 200


async def test_many_silent_connections(shared: Bridge, client: Raw) -> None:
    """Three hundred connections that say nothing keep nobody from being served."""
    silent = [await asyncio.open_connection("127.0.0.1", shared.port) for _ in range(300)]
    try:
        async with asyncio.timeout(3):
            for _ in range(20):
                assert (await client.send(client.message("ping")))[0] == 200
    finally:
        for _, writer in silent:
            writer.close()


async def test_a_body_that_breaks_off(shared: Bridge, client: Raw) -> None:
    """Clients that go in the middle of a body leave nothing behind, and nothing of it runs."""
    data = request(
        shared, json.dumps(client.call_message("mark")).encode(), f"Mcp-Session-Id: {client.session}"
    )
    for cut in (1, 20, len(data) - 1):
        _, writer = await asyncio.open_connection("127.0.0.1", shared.port)
        writer.write(data[:cut])
        await writer.drain()
        writer.close()
    _, writer = await asyncio.open_connection("127.0.0.1", shared.port)
    writer.write(data[:-1])
    writer.write_eof()
    await asyncio.sleep(0.1)
    writer.close()
    assert (await client.send(client.message("ping")))[0] == 200
    assert await shared.nvim.lua("return Seen.late") == 0


async def ended_after(shared: Bridge, *parts: bytes, drip: bytes = b"") -> tuple[float, list[int]]:
    """Seconds until the other side gives up, and the status of all that it said.

    Args:
        shared: the bridge.
        parts: what is sent, each when as many answers have come as there were parts before it.
        drip: then repeated every 0.4 s.
    """
    loop = asyncio.get_running_loop()
    reader, writer = await asyncio.open_connection("127.0.0.1", shared.port)

    async def drop_by_drop() -> None:
        while drip:
            await asyncio.sleep(0.4)
            writer.write(drip)

    said: list[int] = []
    dripping = asyncio.create_task(drop_by_drop())
    try:
        async with asyncio.timeout(20):
            for part in parts[:-1]:
                writer.write(part)
                answer = await read(reader)
                assert answer
                said.append(answer.status)
            begin = loop.time()
            writer.write(parts[-1])
            while (answer := await read(reader)) is not None:
                said.append(answer.status)
        return loop.time() - begin, said
    finally:
        dripping.cancel()
        writer.close()


@pytest.mark.slow
async def test_slow_heads(shared: Bridge, client: Raw) -> None:
    """10 s for a head, however busily it drips, in every request; meanwhile everyone else is served."""
    whole = request(shared, *ping(client.session))
    head, _, _ = whole.partition(b"\r\n\r\n")
    slow = asyncio.gather(
        ended_after(shared, b""),
        ended_after(shared, head),
        ended_after(shared, b"POST /mcp HTTP/1.1\r\n", drip=b"X-Drip: 1\r\n"),
        ended_after(shared, whole, whole, head),
    )
    while not slow.done():
        async with asyncio.timeout(3):
            assert (await client.send(client.message("ping")))[0] == 200
        await asyncio.wait([slow], timeout=1)
    for seconds, said in await slow:
        assert 9.5 <= seconds <= 12
        assert said in ([408], [200, 200, 408])
