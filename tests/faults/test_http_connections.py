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
            whole = request(shared, body, session)
            changed, status = {
                1: (request(shared, body, "Mcp-Session-Id: x"), 404),
                2: (whole.replace(shared.token.encode(), b"f" * len(shared.token)), 401),
                3: (whole.replace(body, b"{" * len(body)), 400),
            }.get(n % 5, (whole, 200))
            writer.write(changed)
            async with asyncio.timeout(3):
                answer = await read(reader)
            assert answer
            assert answer.status == status
            assert status != 200 or answer.json["id"] == n
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
