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
    async with asyncio.timeout(5):
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
FOREIGN_HOSTS = """localhost:0 127.0.0.1:00000 named.example:0 localhost:65536 127.0.0.1:99999 evil.example
    127.0.0.1.evil.example localhost:x localhost: [::1]x [::2] [::1 127.0.0.2 named.example named.example:98
    127.0.0.1@evil.example localhost. a:b:c"""


async def test_loopback_and_configured_hosts_are_allowed(bridge: Served) -> None:
    for host in ALLOWED_HOSTS.split():
        assert await status(bridge, "GET", "/health", {"Host": host}) == 200, host


async def test_other_hosts_are_forbidden_on_every_path(bridge: Served) -> None:
    for host in [*FOREIGN_HOSTS.split(), ":" + "1" * 5000, ""]:
        for path in ("/health", "/mcp", "/nowhere"):
            assert await status(bridge, "GET", path, {"Host": host}) == 403, host


async def test_a_missing_or_repeated_host_is_refused(bridge: Served) -> None:
    for hosts in ("", "Host: localhost\r\nHost: localhost\r\n"):
        answer = await raw(bridge.port, f"GET /health HTTP/1.0\r\n{hosts}\r\n")
        assert b" 200 " not in answer.split(b"\r\n")[0]


async def test_only_the_own_port_and_configured_origins_are_allowed(bridge: Served) -> None:
    port = bridge.port
    for host in ("localhost", "127.0.0.1", "[::1]"):
        assert await status(bridge, "GET", "/health", {"Origin": f"http://{host}:{port}"}) == 200, host
    for origin in ("https://app.example", "https://APP.example"):
        assert await status(bridge, "GET", "/health", {"Origin": origin}) == 200, origin
    foreign = ("null", "http://localhost:1", "http://localhost", "http://evil.example", "")
    others = (f"https://localhost:{port}", f"http://evil.example:{port}", "https://app.example.evil")
    for origin in (*foreign, *others):
        assert await status(bridge, "GET", "/health", {"Origin": origin}) == 403, origin


ENDPOINTS = ("POST /mcp", "GET /mcp", "DELETE /mcp", "POST /", "GET /", "GET /sse", "POST /messages")


async def test_every_endpoint_needs_the_token(bridge: Served) -> None:
    wrong = ("", "Bearer", "Bearer ", f"Basic {TOKEN}", TOKEN, f"{BEARER}x", BEARER[:-1], "Bearer ü")
    for value in (None, *wrong, f"Bearer {TOKEN.upper()}"):
        headers = {} if value is None else {"Authorization": value}
        async with aiohttp.ClientSession() as http:
            for endpoint in ENDPOINTS:
                method, path = endpoint.split()
                async with http.request(method, bridge.url + path, headers=headers) as response:
                    assert (response.status, response.headers["WWW-Authenticate"]) == (401, "Bearer"), value
                    assert (await response.json())["error"]["code"] == -32600


async def test_the_scheme_is_case_insensitive_and_a_repeated_header_is_refused(bridge: Served) -> None:
    assert await status(bridge, "GET", "/mcp", {"Authorization": f"bearer {TOKEN}"}) == 400
    head = "GET /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    answer = await raw(bridge.port, head + f"Authorization: {BEARER}\r\n" * 2 + "\r\n")
    assert answer.startswith(b"HTTP/1.1 401")


async def test_unknown_paths_are_not_found_without_the_token(bridge: Served) -> None:
    paths = """/.well-known/oauth-protected-resource /.well-known/oauth-authorization-server/mcp
        /mcp/.well-known/openid-configuration /register /nowhere /mcp/ //mcp"""
    async with aiohttp.ClientSession() as http:
        for path in paths.split():
            for method in ("GET", "POST"):
                async with http.request(method, bridge.url + path) as response:
                    assert (response.status, await response.text()) == (404, "Not Found"), path


@pytest.mark.parametrize(
    ("request_line", "allowed"),
    [
        ("POST /sse", "GET"),
        ("OPTIONS /mcp", "DELETE,GET,POST"),
        ("PUT /", "DELETE,GET,POST"),
        ("OPTIONS /sse", "GET"),
        ("GET /messages", "POST"),
        ("HEAD /health", "GET"),
        ("OPTIONS /health", "GET"),
        ("PATCH /mcp", "DELETE,GET,POST"),
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
        ("Content-Type", "text/plain", 415),
        ("Content-Type", "application/jsonx", 415),
        ("Content-Type", "application/x-www-form-urlencoded", 415),
        ("Content-Type", "application/octet-stream", 415),
        ("Content-Type", "application/json; charset=utf-8", 400),
        ("Content-Type", "Application/JSON", 400),
        ("Accept", JSON_AND_SSE, 400),
        ("Accept", "text/event-stream,application/json", 400),
        ("Accept", "*/*", 400),
        ("Accept", "application/*, text/*;q=0.1", 400),
        ("Accept", "Text/Event-Stream;q=0.5, APPLICATION/JSON", 400),
        ("Accept", "application/json, */*;q=0.1", 400),
        ("Accept", "application/json", 406),
        ("Accept", "text/event-stream", 406),
        ("Accept", "text/html", 406),
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


async def test_a_body_that_is_not_a_message_is_refused(bridge: Served) -> None:
    for body, code in [(b"{", -32700), (b"\xff", -32700), (b"[]", -32600), (b"{}", -32600), (b'"x"', -32600)]:
        status, answer = await bridge.answer(body)
        assert (status, answer["error"]["code"], answer["id"]) == (400, code, None)


def padded(size: int) -> bytes:
    """A ping of exactly this number of bytes."""
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    return body[:-1] + b" " * (size - len(body)) + b"}"


async def test_a_body_may_be_as_large_as_the_limit(bridge: Served) -> None:
    async def chunks(body: bytes) -> AsyncIterator[bytes]:
        yield body[:1000]
        yield body[1000:]

    assert (await bridge.answer(padded(LIMIT)))[0] == 400, "no session id"
    status, answer = await bridge.answer(padded(LIMIT + 1))
    assert (status, answer["error"]["code"]) == (413, -32005)
    head = {"Accept": JSON_AND_SSE, "Content-Type": "application/json"}
    for size, expected in ((LIMIT, 400), (LIMIT + 1, 413)):
        async with bridge.http.post(bridge.url + "/mcp", data=chunks(padded(size)), headers=head) as response:
            assert response.status == expected


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
    async with asyncio.timeout(2):
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
    clients = [{"name": "test", "version": "1", "transport": "http"}]
    assert (health["sessions"]["count"], health["sessions"]["clients"]) == (1, clients)
    assert health["calls"] == {"in_flight": 0, "limit": 1024}
    assert health["versions"]["nvim"] == "0.0.0"


async def test_garbage_is_answered_without_a_traceback(bridge: Served) -> None:
    answer = await raw(bridge.port, "\x16\x03\x01garbage\r\n\r\n")
    assert b"Traceback" not in answer
    assert b"File " not in answer


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, 400),
        ({"Mcp-Session-Id": "x"}, 404),
        ({"Mcp-Session-Id": "x.y"}, 404),
        ({"Mcp-Session-Id": "x", "MCP-Protocol-Version": STATELESS}, 405),
    ],
)
async def test_get_and_delete_need_a_session(bridge: Served, headers: dict[str, str], expected: int) -> None:
    for method in ("GET", "DELETE"):
        head = {"Accept": "text/event-stream", "Authorization": BEARER} | headers
        assert await status(bridge, method, "/mcp", head) == expected


async def test_a_stream_must_be_accepted_and_a_post_needs_a_known_session(bridge: Served) -> None:
    accept = {"Accept": "application/json", "Authorization": BEARER, "Mcp-Session-Id": "x"}
    assert await status(bridge, "GET", "/mcp", accept) == 406
    assert (await bridge.answer(padded(100), "x"))[0] == 404


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
        async with asyncio.timeout(5):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            length = int(head.lower().partition("content-length: ")[2].partition("\r\n")[0])
            await reader.readexactly(length)
        return int(head.split()[1])

    try:
        assert [await answer(valid) for _ in range(3)] == [200, 200, 200]
        assert await answer(valid | changes) == expected
    finally:
        writer.close()
