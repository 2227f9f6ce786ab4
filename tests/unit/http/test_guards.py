"""Checks of Host, Origin, token, path, method, type and size, with the HTTP status of each refusal."""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import AsyncIterator

import aiohttp
import pytest

from mcp_tools_nvim.values import Limits, Settings
from tests.support.served import JSON_AND_SSE, STATELESS, TOKEN, Served, served

LIMIT = 2000
BEARER = f"Bearer {TOKEN}"


@pytest.fixture
async def bridge() -> AsyncIterator[Served]:
    settings = Settings(
        allowed_hosts=("editor.example", "named.example:99"),
        allowed_origins=("https://app.example/",),
        limits=Limits(request_body=LIMIT),
    )
    async with served(settings) as running:
        yield running


async def status(bridge: Served, method: str, path: str, headers: dict[str, str] | None = None) -> int:
    """Status of a request that has the token only if `headers` does."""
    async with (
        aiohttp.ClientSession() as http,
        http.request(method, bridge.url + path, headers=headers) as response,
    ):
        assert not any("access-control" in name.lower() for name in response.headers)
        return response.status


async def raw(port: int, text: str) -> bytes:
    """Everything the server sends on a connection until it closes it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(text.encode("latin-1"))
    async with asyncio.timeout(10):
        answer = await reader.read()
    writer.close()
    return answer


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("http://evil.example/health", 403),
        ("http://127.0.0.1.evil.example/health", 403),
        ("http://user@evil.example/health", 403),
        ("http://evil.example?/health", 403),
        ("http://127.0.0.1:1/health", 200),
        ("http://localhost/health", 200),
    ],
)
async def test_the_host_of_an_absolute_target_is_checked(bridge: Served, target: str, status: int) -> None:
    answer = await raw(bridge.port, f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 %d" % status)


ALLOWED_HOSTS = """localhost LOCALHOST:1 127.0.0.1 127.0.0.1:80 [::1] [::1]:7
    editor.example editor.example:5 named.example:99"""
FOREIGN_HOSTS = """localhost:0 127.0.0.1:00000 named.example:0 localhost:65536 127.0.0.1:99999
    localhost:x localhost: [::1]x [::1 named.example named.example:98 a:b:c"""


async def test_loopback_and_configured_hosts_are_allowed_and_others_forbidden(bridge: Served) -> None:
    for hosts, expected in ((ALLOWED_HOSTS, 200), (FOREIGN_HOSTS, 403)):
        for host in hosts.split():
            assert await status(bridge, "GET", "/health", {"Host": host}) == expected, host
    assert await status(bridge, "GET", "/health", {"Host": ":" + "1" * 5000}) == 403


@pytest.mark.parametrize(
    ("origin", "expected"),
    [("https://app.example", 200), ("https://APP.example", 200), ("https://app.example.evil", 403)],
)
async def test_configured_origins_are_allowed(bridge: Served, origin: str, expected: int) -> None:
    assert await status(bridge, "GET", "/health", {"Origin": origin}) == expected


async def test_every_method_needs_the_token(bridge: Served) -> None:
    async with aiohttp.ClientSession() as http:
        for endpoint in ("GET /mcp", "DELETE /mcp", "GET /", "GET /sse", "POST /messages"):
            method, path = endpoint.split()
            async with http.request(method, bridge.url + path) as response:
                assert (response.status, response.headers["WWW-Authenticate"]) == (401, "Bearer"), endpoint
                assert (await response.json())["error"]["code"] == -32600
    assert await status(bridge, "GET", "/mcp", {"Authorization": f"bearer {TOKEN}"}) == 400


@pytest.mark.parametrize(
    ("request_line", "allowed"),
    [
        ("POST /sse", "GET"),
        ("PUT /", "DELETE,GET,POST"),
        ("GET /messages", "POST"),
        ("HEAD /health", "GET"),
    ],
)
async def test_a_wrong_method_is_refused_with_the_right_ones(
    bridge: Served, request_line: str, allowed: str
) -> None:
    method, path = request_line.split()
    async with aiohttp.ClientSession() as http, http.request(method, bridge.url + path) as response:
        assert (response.status, response.headers["Allow"]) == (405, allowed)


@pytest.mark.parametrize(
    ("header", "value", "expected"),
    [
        ("Content-Type", "application/octet-stream", 415),
        ("Accept", "text/event-stream,application/json", 400),
        ("Accept", "application/*, text/*;q=0.1", 400),
        ("Accept", "Text/Event-Stream;q=0.5, APPLICATION/JSON", 400),
        ("Accept", "application/json, */*;q=0.1", 400),
        ("Accept", "*/*, text/event-stream;q=0", 406),
        ("Accept", "application/jsonx, text/event-streamx", 406),
        ("Accept", "application/json;q=0.0, text/event-stream", 406),
    ],
)
async def test_a_post_sends_json_and_accepts_json_and_streams(
    bridge: Served, header: str, value: str, expected: int
) -> None:
    """Otherwise it is 415 or 406. An accepted empty object is 400."""
    async with await bridge.post(b"{}", **{header: value}) as response:
        assert response.status == expected


def padded(size: int) -> bytes:
    """A ping of exactly this number of bytes."""
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    return body[:-1] + b" " * (size - len(body)) + b"}"


@pytest.mark.parametrize(
    ("headers", "first"),
    [
        ("Host: evil.example", b"403"),
        ("Host: localhost", b"401"),
        (f"Host: localhost\r\nAuthorization: {BEARER}", b"413"),
        (f"Host: localhost\r\nAuthorization: {BEARER}\r\nContent-Type: application/json", b"100 Continue"),
    ],
)
async def test_the_head_is_checked_before_the_body_is_requested(
    bridge: Served, headers: str, first: bytes
) -> None:
    """A refused request is answered without its body; a good one gets 100 Continue."""
    body = padded(500 if first == b"100 Continue" else LIMIT + 1)
    head = f"POST /mcp HTTP/1.1\r\n{headers}\r\nAccept: */*\r\nContent-Length: {len(body)}\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", bridge.port)
    writer.write(f"{head}Expect: 100-continue\r\n\r\n".encode())
    async with asyncio.timeout(10):
        assert first in await reader.readline()
        if first == b"100 Continue":
            await reader.readline()
            writer.write(body)
            assert b"400" in await reader.readline()
    writer.close()


async def test_health_proves_the_token_and_shows_the_state_to_its_holder(bridge: Served) -> None:
    async with aiohttp.ClientSession() as http:
        async with http.get(bridge.url + "/health") as response:
            assert await response.json() == {"status": "ok"}
        async with http.get(bridge.url + "/health?nonce=a%20b") as response:
            text = f"mcp-tools.nvim health proof 1\0{bridge.port}\0a b"
            proof = hmac.new(TOKEN.encode(), text.encode(), "sha256").hexdigest()
            assert await response.json() == {"status": "ok", "proof": proof}
    assert await status(bridge, "GET", "/health?nonce=" + "n" * 257) == 400
    assert await status(bridge, "GET", "/health", {"Authorization": "Bearer wrong"}) == 401
    await bridge.initialize()
    health = await bridge.health()
    assert health["editor"] == {"connected": True, "boot": "editor-boot"}
    clients = [{"name": "test", "version": "1", "transport": "http", "holder": ""}]
    assert (health["sessions"]["count"], health["sessions"]["clients"]) == (1, clients)
    assert health["calls"] == {"in_flight": 0, "limit": 1024}
    assert health["versions"]["nvim"] == "0.0.0"


async def test_get_needs_sessions_and_must_accept_a_stream(bridge: Served) -> None:
    head = {"Accept": "text/event-stream", "Authorization": BEARER, "Mcp-Session-Id": "x"}
    for method in ("GET", "DELETE"):
        assert await status(bridge, method, "/mcp", head | {"MCP-Protocol-Version": STATELESS}) == 405
    assert await status(bridge, "GET", "/mcp", head | {"Accept": "application/json"}) == 406


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, 200),
        ({"Authorization": "Bearer " + "x" * len(TOKEN)}, 401),
        ({"Authorization": None}, 401),
        ({"Origin": "https://evil.example"}, 403),
        ({"Host": "evil.example"}, 403),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Encoding": "gzip"}, 415),
        ({"Accept": "text/plain"}, 406),
    ],
)
async def test_each_request_of_a_connection_is_checked(
    bridge: Served, changes: dict[str, str | None], expected: int
) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()
    valid: dict[str, str | None] = {
        "Host": "127.0.0.1",
        "Authorization": BEARER,
        "Content-Type": "application/json",
        "Accept": JSON_AND_SSE,
        "Mcp-Session-Id": await bridge.initialize(),
        "Content-Length": str(len(body)),
    }
    reader, writer = await asyncio.open_connection("127.0.0.1", bridge.port)

    async def answer(headers: dict[str, str | None]) -> int:
        lines = [f"{name}: {value}" for name, value in headers.items() if value is not None]
        writer.write("\r\n".join(["POST /mcp HTTP/1.1", *lines, "", ""]).encode() + body)
        async with asyncio.timeout(10):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            length = int(head.lower().partition("content-length: ")[2].partition("\r\n")[0])
            await reader.readexactly(length)
        return int(head.split()[1])

    try:
        assert [await answer(valid) for _ in range(3)] == [200, 200, 200]
        assert await answer(valid | changes) == expected
    finally:
        writer.close()
