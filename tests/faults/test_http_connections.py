"""Unusual connections: reused, pipelined, byte by byte, ambiguous or not HTTP at all."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.support.bridge import Bridge
from tests.support.raw import Raw
from tests.support.tcp import ping, read, request, talk

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.slow
async def test_a_connection_serves_requests_also_after_refused_ones(shared: Bridge, client: Raw) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", shared.port)
    try:
        for n in range(50):
            body, session = ping(client.session, n)
            whole = request(shared, body, session)
            changed, status = {
                1: (request(shared, body, "Mcp-Session-Id: x"), 404),
                2: (whole.replace(shared.token.encode(), b"f" * len(shared.token)), 401),
                3: (whole.replace(body, b"{" * len(body)), 400),
            }.get(n % 5, (whole, 200))
            writer.write(changed)
            async with asyncio.timeout(10):
                answer = await read(reader)
            assert answer
            assert answer.status == status
            assert status != 200 or answer.json["id"] == n
    finally:
        writer.close()


async def test_pipelined_requests_are_answered_in_order(shared: Bridge, client: Raw) -> None:
    slow = client.call_message("later", {"ms": 200, "value": "slow"}) | {"id": 0}
    parts = [request(shared, json.dumps(slow).encode(), f"Mcp-Session-Id: {client.session}")]
    parts += [request(shared, *ping(client.session, n)) for n in range(1, 30)]
    answers = await talk(shared, b"".join(parts), answers=30)
    assert [answer.json["id"] for answer in answers] == list(range(30))


async def test_a_request_may_arrive_byte_by_byte(shared: Bridge, client: Raw) -> None:
    data = request(shared, *ping(client.session))
    (answer,) = await talk(shared, *(data[n : n + 1] for n in range(len(data))), answers=1)
    assert answer.status == 200


SMUGGLED = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n"


@pytest.mark.parametrize(
    "line",
    [
        *("Content-Length: 5", "Content-Length: {length}", "Content-Length : 5", "X: a\rContent-Length: 0"),
        *("Transfer-Encoding: chunked", "Transfer-Encoding: chunked, identity", " folded: yes"),
        *("Transfer-Encoding: xchunked", "Transfer-Encoding : chunked", "X-\0: a", "no colon", ": no name"),
    ],
)
async def test_requests_with_an_ambiguous_end_are_refused(shared: Bridge, client: Raw, line: str) -> None:
    """Nothing after them is taken for a request."""
    mark = json.dumps(client.call_message("mark")).encode()
    session = f"Mcp-Session-Id: {client.session}"
    data = request(shared, mark, session, line.format(length=len(mark)))
    (answer,) = await talk(shared, data + SMUGGLED)
    assert answer.status == 400
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
async def test_bytes_that_are_not_http_are_refused(shared: Bridge, client: Raw, data: bytes) -> None:
    for answer in await talk(shared, data):
        assert 400 <= answer.status < 500
        assert b"Traceback" not in answer.body
    assert (await client.send(client.message("ping")))[0] == 200
