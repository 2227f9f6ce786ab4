"""Bodies that are not JSON, not a JSON-RPC message, or too large."""

from __future__ import annotations

import gzip
import json
import zlib
from typing import Any

import pytest

from tests.support.bridge import Bridge
from tests.support.raw import Raw, text_of
from tests.support.shared import BODY, memory_of
from tests.support.sse import LegacyStream
from tests.support.tcp import request, talk

pytestmark = pytest.mark.asyncio(loop_scope="session")


def nested(levels: int, kind: str = "list") -> bytes:
    """A ping that is nested `levels` deep."""
    # The message and its params are two levels already.
    begin, end = ("[", "]") if kind == "list" else ('{"a":', "}")
    inner = begin * (levels - 2) + ("" if kind == "list" else "1") + end * (levels - 2)
    return b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":%s}}' % inner.encode()


NOT_JSON = {
    "empty": b"",
    "space": b" \n",
    "truncated": b'{"jsonrpc":"2.0","id":1,"method":"pi',
    "two": b'{"jsonrpc":"2.0","id":1,"method":"ping"}{"jsonrpc":"2.0","id":2,"method":"ping"}',
    "trailing comma": b'{"jsonrpc":"2.0","id":1,"method":"ping",}',
    "single quotes": b"{'jsonrpc':'2.0'}",
    "NaN": b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":NaN}}',
    "Infinity": b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":-Infinity}}',
    "Latin-1": '{"jsonrpc":"2.0","id":1,"method":"é"}'.encode("latin-1"),
    "UTF-16": '{"jsonrpc":"2.0","id":1,"method":"ping"}'.encode("utf-16"),
    "overlong": b'{"jsonrpc":"2.0","id":1,"method":"\xc0\xaf"}',
    "surrogate in UTF-8": b'{"jsonrpc":"2.0","id":1,"method":"\xed\xa0\x80"}',
    "lone surrogate": b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"\\ud800"}}',
    "lone surrogate as key": b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"\\uDFFF":1}}',
    "surrogates in disorder": b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"\\ude00\\ud83d"}}',
    "raw control character": b'{"jsonrpc":"2.0","id":1,"method":"pi\x01ng"}',
    "byte order mark": b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"ping"}',
    "NUL": b'\0{"jsonrpc":"2.0","id":1,"method":"ping"}',
    "binary": bytes(range(256)),
    "form": b"jsonrpc=2.0&id=1&method=ping",
    "101 lists": nested(101),
    "101 objects": nested(101, "object"),
    "30 000 lists": b"[" * 30_000,
    "30 000 lists, closed": b"[" * 30_000 + b"]" * 30_000,
    "1e400": b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":1e400}}',
    "10 000 digits": b'{"jsonrpc":"2.0","id":%s,"method":"ping"}' % (b"9" * 10_000),
}


WITH_ID = {"NaN", "Infinity", "lone surrogate", "lone surrogate as key", "surrogates in disorder", "1e400"}
"""Bodies whose id can be read."""


async def test_a_body_that_is_not_json_is_a_parse_error(shared: Bridge, client: Raw) -> None:
    """Also over the legacy transport, whose stream stays open."""
    async with LegacyStream(shared) as legacy:
        for what, body in NOT_JSON.items():
            id_ = 1 if what in WITH_ID else None
            for path, session in (
                *(("/mcp", client.session), ("/", client.session), ("/mcp", None)),
                (legacy.path, None),
            ):
                status, answer = await client.send(body, path=path, Mcp_Session_Id=session)
                assert (status, answer["id"], answer["error"]["code"]) == (400, id_, -32700), (what, path)
                assert set(answer) == {"jsonrpc", "id", "error"}


NO_MESSAGE: dict[str, Any] = {repr(value): value for value in (None, True, 1, "ping", {}, [])} | {
    "no version": {"id": 1, "method": "ping"},
    "version 1.0": {"jsonrpc": "1.0", "id": 1, "method": "ping"},
    "version as number": {"jsonrpc": 2.0, "id": 1, "method": "ping"},
    "method as number": {"jsonrpc": "2.0", "id": 1, "method": 1},
    "no method": {"jsonrpc": "2.0", "id": 1},
    "id null": {"jsonrpc": "2.0", "id": None, "method": "ping"},
    "id true": {"jsonrpc": "2.0", "id": True, "method": "ping"},
    "id list": {"jsonrpc": "2.0", "id": [1], "method": "ping"},
    "id 1.5": {"jsonrpc": "2.0", "id": 1.5, "method": "ping"},
    "result without id": {"jsonrpc": "2.0", "result": {}},
    "result and error": {"jsonrpc": "2.0", "id": 1, "result": {}, "error": {"code": 1, "message": ""}},
    "error as text": {"jsonrpc": "2.0", "id": 1, "error": "no"},
    "batch": [{"jsonrpc": "2.0", "id": 1, "method": "ping"}],
    "batch of nothing": [1, None],
    "nested batch": [[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]],
}


async def test_json_that_is_not_one_message_is_an_invalid_request(client: Raw) -> None:
    for what, body in NO_MESSAGE.items():
        status, answer = await client.send(json.dumps(body).encode())
        assert (status, answer["error"]["code"]) == (400, -32600), what


async def test_a_hundred_levels_are_allowed(client: Raw) -> None:
    for kind in ("list", "object"):
        assert (await client.send(nested(100, kind)))[0] == 200
    for levels in (10, 30, 33, 60, 95):
        value: Any = "deep"
        for _ in range(levels):
            value = [value]
        answer = await client.call("echo", {"value": value})
        assert json.loads(text_of(answer)) == value, levels


async def test_the_last_of_equal_keys_is_used(client: Raw) -> None:
    body = (
        b'{"jsonrpc":"1.0","jsonrpc":"2.0","id":1,"id":2,"method":"nope","method":"tools/call",'
        b'"params":{"name":"nvim_nope","name":"nvim_echo","arguments":{"value":"first","value":"last"}}}'
    )
    status, answer = await client.send(body)
    assert (status, answer["id"], text_of(answer["result"])) == (200, 2, "last")


def of_size(size: int) -> bytes:
    """A call of `echo` with a body of exactly `size` bytes."""
    params = '{"name":"nvim_echo","arguments":{"value":"%s"}}'
    frame = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":' + params + "}"
    return (frame % ("x" * (size - len(frame) + 2))).encode()


async def test_a_body_beyond_the_limit_is_413(shared: Bridge, client: Raw) -> None:
    fits, too_much = of_size(BODY), of_size(BODY + 1)
    assert (len(fits), len(too_much)) == (BODY, BODY + 1)
    assert (await client.send(fits))[0] == 200
    status, answer = await client.send(too_much)
    assert (status, answer["error"]["code"]) == (413, -32005)
    session = f"Mcp-Session-Id: {client.session}"
    for body, wanted in ((fits, 200), (too_much, 413)):
        chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
        head = request(shared, b"", session, "Transfer-Encoding: chunked", Content_Length=None)
        (got,) = await talk(shared, head, chunked, answers=1)
        assert got.status == wanted
    for how, packed in (
        ("gzip", gzip.compress(b" " * 50_000_000)),
        ("deflate", zlib.compress(b" " * 50_000_000)),
    ):
        assert len(packed) < BODY
        (got,) = await talk(shared, request(shared, packed, session, Content_Encoding=how), answers=1)
        assert got.status in (400, 413, 415), how
    assert memory_of(await shared.pid()) < 250_000


async def test_invalid_or_excessive_lengths_are_refused_before_the_body(shared: Bridge, client: Raw) -> None:
    session = f"Mcp-Session-Id: {client.session}"
    for length, expected in (("x", 400), ("-1", 400), ("1e3", 400), (10**30, 400), (BODY + 1, 413)):
        (got,) = await talk(shared, request(shared, b"", session, Content_Length=length), answers=1)
        assert got.status in (expected, 413), length


@pytest.mark.slow
@pytest.mark.parametrize("known", [False, True], ids=["foreign", "client"])
async def test_compressed_bodies_are_not_unpacked(shared: Bridge, client: Raw, known: bool) -> None:
    pid = await shared.pid()
    packed = gzip.compress(b" " * 200_000_000)
    assert len(packed) < BODY
    before = memory_of(pid)
    fields = {"Content_Encoding": "gzip"} | ({} if known else {"Authorization": "Bearer wrong"})
    data = request(shared, packed, f"Mcp-Session-Id: {client.session}", **fields)
    for _ in range(5):
        (got,) = await talk(shared, data, answers=1)
        assert got.status == (415 if known else 401)
    assert memory_of(pid) - before < 30_000
