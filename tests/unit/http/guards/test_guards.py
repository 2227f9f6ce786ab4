"""Who may speak, how much, and how each refusal looks: every HTTP status."""

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
    """Status of a request without the token, unless `headers` brings it."""
    async with (
        aiohttp.ClientSession() as http,
        http.request(method, bridge.url + path, headers=headers) as response,
    ):
        assert not any("access-control" in name.lower() for name in response.headers)
        return response.status


async def raw(port: int, text: bytes, limit: float = 5.0) -> bytes:
    """What the server sends on a bare connection until it closes it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(text)
    async with asyncio.timeout(limit):
        answer = await reader.read()
    writer.close()
    return answer


@pytest.mark.parametrize(
    ("target", "head"),
    [
        ("http://evil.example/health", b"HTTP/1.1 403"),
        ("http://127.0.0.1.evil.example/health", b"HTTP/1.1 403"),
        ("http://user@evil.example/health", b"HTTP/1.1 403"),
        ("http://evil.example?/health", b"HTTP/1.1 403"),
        ("http://127.0.0.1:1/health", b"HTTP/1.1 200"),
        ("http://localhost/health", b"HTTP/1.1 200"),
    ],
)
async def test_targets_that_name_a_host(bridge: Served, target: str, head: bytes) -> None:
    """The host in a target counts like that of the header, whatever the header says."""
    text = f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    assert (await raw(bridge.port, text.encode())).startswith(head)


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST:1",
        "127.0.0.1",
        "127.0.0.1:80",
        "[::1]",
        "[::1]:7",
        "editor.example",
        "editor.example:5",
        "named.example:99",
    ],
)
async def test_hosts_that_are_this_machine(bridge: Served, host: str) -> None:
    """Loopback names with any port and the configured hosts are served."""
    assert await status(bridge, "GET", "/health", {"Host": host}) == 200


@pytest.mark.parametrize(
    "host",
    [
        "localhost:0",
        "127.0.0.1:00000",
        "named.example:0",
        "localhost:65536",
        "127.0.0.1:99999",
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost:x",
        "localhost:",
        "[::1]x",
        "[::2]",
        "[::1",
        "127.0.0.2",
        "named.example",
        "named.example:98",
        "127.0.0.1@evil.example",
        "localhost.",
        "a:b:c",
        ":" + "1" * 5000,
        "",
    ],
)
async def test_foreign_hosts(bridge: Served, host: str) -> None:
    """Every other Host is 403, whatever the path."""
    for path in ("/health", "/mcp", "/nowhere"):
        assert await status(bridge, "GET", path, {"Host": host}) == 403


async def test_a_missing_or_repeated_host(bridge: Served) -> None:
    """There must be exactly one Host."""
    for head in (
        b"GET /health HTTP/1.0\r\n\r\n",
        b"GET /health HTTP/1.0\r\nHost: localhost\r\nHost: localhost\r\n\r\n",
    ):
        assert b" 200 " not in (await raw(bridge.port, head)).split(b"\r\n")[0]


async def test_origins(bridge: Served) -> None:
    """Our own port on loopback and configured origins are allowed; `null` and all others are 403."""
    own = [
        f"http://localhost:{bridge.port}",
        f"http://127.0.0.1:{bridge.port}",
        f"http://[::1]:{bridge.port}",
    ]
    for origin in [*own, "https://app.example", "https://APP.example"]:
        assert await status(bridge, "GET", "/health", {"Origin": origin}) == 200, origin
    foreign = [
        "null",
        "http://localhost:1",
        "http://localhost",
        f"https://localhost:{bridge.port}",
        "http://evil.example",
        f"http://evil.example:{bridge.port}",
        "https://app.example.evil",
        "",
    ]
    for origin in foreign:
        assert await status(bridge, "GET", "/health", {"Origin": origin}) == 403, origin


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        f"Basic {TOKEN}",
        TOKEN,
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        "Bearer ü",
        f"Bearer {TOKEN.upper()}",
    ],
)
async def test_without_the_token(bridge: Served, value: str | None) -> None:
    """No token or another one is 401 on every endpoint, with the scheme that is wanted."""
    headers = {} if value is None else {"Authorization": value}
    for method, path in [
        ("POST", "/mcp"),
        ("GET", "/mcp"),
        ("DELETE", "/mcp"),
        ("POST", "/"),
        ("GET", "/"),
        ("GET", "/sse"),
        ("POST", "/messages"),
    ]:
        async with (
            aiohttp.ClientSession() as http,
            http.request(method, bridge.url + path, headers=headers) as response,
        ):
            assert response.status == 401
            assert response.headers["WWW-Authenticate"] == "Bearer"
            assert (await response.json())["error"]["code"] == -32600


async def test_the_scheme_has_any_case_and_the_header_comes_once(bridge: Served) -> None:
    """`bearer` is `Bearer`; two headers are none."""
    assert await status(bridge, "GET", "/mcp", {"Authorization": f"bearer {TOKEN}"}) == 400
    head = "GET /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    twice = f"Authorization: Bearer {TOKEN}\r\n" * 2
    answer = await raw(bridge.port, f"{head}{twice}\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 401")


@pytest.mark.parametrize(
    "path",
    [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-authorization-server/mcp",
        "/mcp/.well-known/openid-configuration",
        "/register",
        "/nowhere",
        "/mcp/",
        "//mcp",
    ],
)
async def test_unknown_paths(bridge: Served, path: str) -> None:
    """They are a plain 404 without the token, for every method."""
    for method in ("GET", "POST"):
        async with aiohttp.ClientSession() as http, http.request(method, bridge.url + path) as response:
            assert (response.status, await response.text()) == (404, "Not Found")


async def test_wrong_methods(bridge: Served) -> None:
    """They are 405 with the right ones, without the token; OPTIONS is one of them."""
    for method, path, allowed in [
        ("POST", "/sse", "GET"),
        ("OPTIONS", "/mcp", "DELETE,GET,POST"),
        ("PUT", "/", "DELETE,GET,POST"),
        ("OPTIONS", "/sse", "GET"),
        ("GET", "/messages", "POST"),
        ("HEAD", "/health", "GET"),
        ("OPTIONS", "/health", "GET"),
        ("PATCH", "/mcp", "DELETE,GET,POST"),
    ]:
        async with aiohttp.ClientSession() as http, http.request(method, bridge.url + path) as response:
            assert (response.status, response.headers["Allow"]) == (405, allowed)


async def test_content_types(bridge: Served) -> None:
    """A POST that is not JSON is 415; parameters do not matter."""
    for given in (
        "text/plain",
        "application/jsonx",
        "application/x-www-form-urlencoded",
        "application/octet-stream",
    ):
        async with await bridge.post(b"{}", Content_Type=given) as response:
            assert response.status == 415
    for given in ("application/json; charset=utf-8", "Application/JSON"):
        async with await bridge.post(b"{}", Content_Type=given) as response:
            assert response.status == 400


async def test_accept(bridge: Served) -> None:
    """Both types must be acceptable, in any order, as ranges too; a quality of zero is a no."""
    for given in (
        JSON_AND_SSE,
        "text/event-stream,application/json",
        "*/*",
        "application/*, text/*;q=0.1",
        "Text/Event-Stream;q=0.5, APPLICATION/JSON",
        "application/json, */*;q=0.1",
    ):
        async with await bridge.post(b"{}", Accept=given) as response:
            assert response.status == 400, given
    for given in (
        "application/json",
        "text/event-stream",
        "text/html",
        "*/*, text/event-stream;q=0",
        "application/jsonx, text/event-streamx",
        "application/json;q=0.0, text/event-stream",
    ):
        async with await bridge.post(b"{}", Accept=given) as response:
            assert response.status == 406, given


async def test_bodies_that_are_no_message(bridge: Served) -> None:
    """They are 400, before any session is asked for."""
    for body, code in [(b"{", -32700), (b"\xff", -32700), (b"[]", -32600), (b"{}", -32600), (b'"x"', -32600)]:
        async with await bridge.post(body) as response:
            assert (response.status, (await response.json())["error"]["code"]) == (400, code)
            assert (await response.json())["id"] is None


def padded(size: int) -> bytes:
    """A ping of exactly this many bytes."""
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    return body[:-1] + b" " * (size - len(body)) + b"}"


async def test_the_size_of_a_body(bridge: Served) -> None:
    """The limit itself passes, one byte more is 413, whether the length is declared or not."""

    async def chunks(body: bytes) -> AsyncIterator[bytes]:
        yield body[:1000]
        yield body[1000:]

    async with await bridge.post(padded(LIMIT)) as response:
        assert response.status == 400, "no session id"
    async with await bridge.post(padded(LIMIT + 1)) as response:
        assert (response.status, (await response.json())["error"]["code"]) == (413, -32005)
    head = {"Accept": JSON_AND_SSE, "Content-Type": "application/json"}
    for size, expected in ((LIMIT, 400), (LIMIT + 1, 413)):
        async with bridge.http.post(bridge.url + "/mcp", data=chunks(padded(size)), headers=head) as response:
            assert response.status == expected


async def test_guards_come_before_the_body(bridge: Served) -> None:
    """A refused request gets its answer although its body never comes, and is not told to send it."""
    for head, expected in [
        ("POST /mcp HTTP/1.1\r\nHost: evil.example\r\n", b"403"),
        ("POST /mcp HTTP/1.1\r\nHost: localhost\r\n", b"401"),
        (f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n", b"413"),
    ]:
        reader, writer = await asyncio.open_connection("127.0.0.1", bridge.port)
        length = LIMIT + 1
        writer.write(f"{head}Content-Length: {length}\r\nExpect: 100-continue\r\n\r\n".encode())
        async with asyncio.timeout(2):
            line = await reader.readline()
        assert expected in line
        writer.close()


async def test_expect_is_answered_when_nothing_is_wrong(bridge: Served) -> None:
    """Clients that ask before they send the body are told to go on."""
    body = padded(500)
    reader, writer = await asyncio.open_connection("127.0.0.1", bridge.port)
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nAccept: */*\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n"
    )
    writer.write(head.encode())
    async with asyncio.timeout(2):
        assert b"100 Continue" in await reader.readline()
        await reader.readline()
        writer.write(body)
        assert b"400" in await reader.readline()
    writer.close()


async def test_health(bridge: Served) -> None:
    """Without the token only that it lives, and for a nonce a proof; with it the state of things."""
    async with aiohttp.ClientSession() as http:
        async with http.get(bridge.url + "/health") as response:
            assert await response.json() == {"status": "ok"}
        async with http.get(bridge.url + "/health?nonce=a%20b") as response:
            text = f"mcp-tools.nvim health proof 1\0{bridge.port}\0a b"
            proof = hmac.new(TOKEN.encode(), text.encode(), "sha256").hexdigest()
            assert await response.json() == {"status": "ok", "proof": proof}
        async with http.get(bridge.url + "/health?nonce=" + "n" * 257) as response:
            assert response.status == 400
        async with http.get(bridge.url + "/health", headers={"Authorization": "Bearer wrong"}) as response:
            assert response.status == 401
    await bridge.initialize()
    async with bridge.http.get(bridge.url + "/health") as response:
        health = await response.json()
    assert health["editor"] == {"connected": True, "boot": "editor-boot"}
    assert health["sessions"]["count"] == 1
    assert health["sessions"]["clients"] == [{"name": "test", "version": "1", "transport": "http"}]
    assert health["calls"] == {"in_flight": 0, "limit": 1024}
    assert health["versions"]["nvim"] == "0.0.0"


async def test_faults_of_ours_are_not_told(bridge: Served) -> None:
    """Garbage instead of HTTP, and whatever else, never shows a trace."""
    answer = await raw(bridge.port, b"\x16\x03\x01garbage\r\n\r\n")
    assert b"Traceback" not in answer
    assert b"File " not in answer


async def test_get_and_delete_need_a_session(bridge: Served) -> None:
    """No id is 400, an unknown one 404; the stateless era has neither method."""
    for method in ("GET", "DELETE"):
        for headers, expected in [
            ({}, 400),
            ({"Mcp-Session-Id": "x"}, 404),
            ({"Mcp-Session-Id": "x.y"}, 404),
            ({"Mcp-Session-Id": "x", "MCP-Protocol-Version": STATELESS}, 405),
        ]:
            headers = {"Accept": "text/event-stream", "Authorization": f"Bearer {TOKEN}"} | headers
            assert await status(bridge, method, "/mcp", headers) == expected
    accept = {"Accept": "application/json", "Authorization": f"Bearer {TOKEN}", "Mcp-Session-Id": "x"}
    assert await status(bridge, "GET", "/mcp", accept) == 406
    async with await bridge.post(json.loads(padded(100)), "x") as response:
        assert response.status == 404


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
async def test_each_request_of_a_connection_is_judged(
    bridge: Served, changes: dict[str, str | None], expected: int
) -> None:
    """What was said of one head is true of that alone: the next one on the connection may be another."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()
    session = await bridge.initialize()
    usual: dict[str, str | None] = {
        "Host": "127.0.0.1",
        "Authorization": f"Bearer {TOKEN}",
        "Content-Type": "application/json",
        "Accept": JSON_AND_SSE,
        "Mcp-Session-Id": session,
        "Content-Length": str(len(body)),
    }

    def request(headers: dict[str, str | None]) -> bytes:
        lines = [f"{name}: {value}" for name, value in headers.items() if value is not None]
        return "\r\n".join(["POST /mcp HTTP/1.1", *lines, "", ""]).encode() + body

    reader, writer = await asyncio.open_connection("127.0.0.1", bridge.port)

    async def answer(text: bytes) -> int:
        writer.write(text)
        async with asyncio.timeout(5):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            length = int(head.lower().partition("content-length: ")[2].partition("\r\n")[0])
            await reader.readexactly(length)
        return int(head.split()[1])

    try:
        assert [await answer(request(usual)) for _ in range(3)] == [200, 200, 200]
        assert await answer(request(usual | changes)) == expected
    finally:
        writer.close()
