"""Checks of Host, Origin, token, path, method, type and size, with the HTTP status of each refusal."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from mcp_tools_nvim.values import Limits, Settings
from tests.support import tcp
from tests.support.served import STATELESS, TOKEN, Served, served

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
    """Status of a request that has the token only if `headers` does."""
    async with (
        aiohttp.ClientSession() as http,
        http.request(method, bridge.url + path, headers=headers) as response,
    ):
        assert not any("access-control" in name.lower() for name in response.headers)
        return response.status


FOREIGN = ("evil.example/", "127.0.0.1.evil.example/", "user@evil.example/", "evil.example?/")


@pytest.mark.parametrize(
    ("host", "status"),
    [*((host, 403) for host in FOREIGN), *((host, 200) for host in ("127.0.0.1:1/", "localhost/"))],
)
async def test_the_host_of_an_absolute_target_is_checked(bridge: Served, host: str, status: int) -> None:
    line = f"GET http://{host}health HTTP/1.1"
    head = tcp.request(bridge, line=line, Host="localhost", Authorization=None)
    (answer,) = await tcp.talk(bridge, head, answers=1)
    assert answer.status == status


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
    [("POST /sse", "GET"), ("PUT /", "DELETE,GET,POST"), ("GET /messages", "POST"), ("HEAD /health", "GET")],
)
async def test_a_wrong_method_gets_the_right_ones(bridge: Served, request_line: str, allowed: str) -> None:
    method, path = request_line.split()
    async with aiohttp.ClientSession() as http, http.request(method, bridge.url + path) as response:
        assert (response.status, response.headers["Allow"]) == (405, allowed)


GOOD = ("text/event-stream,application/json", "application/*, text/*;q=0.1", "application/json, */*;q=0.1")
BAD = ("*/*, text/event-stream;q=0", "application/jsonx, text/event-streamx")


@pytest.mark.parametrize(
    ("header", "value", "expected"),
    [
        ("Content-Type", "application/octet-stream", 415),
        *(("Accept", value, 400) for value in (*GOOD, "Text/Event-Stream;q=0.5, APPLICATION/JSON")),
        *(("Accept", value, 406) for value in (*BAD, "application/json;q=0.0, text/event-stream")),
    ],
)
async def test_a_post_accepts_streams(bridge: Served, header: str, value: str, expected: int) -> None:
    """Otherwise it is 415 or 406. An accepted empty object is 400."""
    async with await bridge.post(b"{}", **{header: value}) as response:
        assert response.status == expected


@pytest.mark.parametrize(
    ("fields", "first"),
    [
        ({"Host": "evil.example"}, b"403"),
        ({"Authorization": None}, b"401"),
        ({"Content_Type": None}, b"413"),
        ({"Content_Length": 500}, b"100 Continue"),
    ],
)
async def test_heads_are_checked_first(bridge: Served, fields: dict[str, Any], first: bytes) -> None:
    """A refused request is answered without its body; a good one gets 100 Continue."""
    head = tcp.request(bridge, b"", "Expect: 100-continue", **{"Content_Length": LIMIT + 1} | fields)
    async with bridge.connection() as (reader, writer), asyncio.timeout(10):
        writer.write(head)
        assert first in await reader.readline()
        if first == b"100 Continue":
            await reader.readline()
            writer.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}'.ljust(500))
            assert b"400" in await reader.readline()


async def test_health_proves_the_token_and_shows_the_state_to_its_holder(bridge: Served) -> None:
    async with aiohttp.ClientSession() as http:
        async with http.get(bridge.url + "/health") as response:
            assert await response.json() == {"status": "ok"}
        async with http.get(bridge.url + "/health?nonce=a%20b") as response:
            text = f"mcp-tools.nvim health proof 1\0{bridge.port}\0a b"
            proof = hmac.new(TOKEN.encode(), text.encode(), "sha256").hexdigest()
            assert await response.json() == {"status": "ok", "proof": proof}

    assert await status(bridge, "GET", "/health", {"Authorization": "Bearer wrong"}) == 401
    await bridge.initialize()
    health = await bridge.health()
    assert health["editor"] == {"connected": True, "boot": "editor-boot"}
    (client,) = health["sessions"]["clients"]
    assert (health["sessions"]["count"], client.pop("key")) == (1, bridge.reported[-1][0].key)
    assert client == {"name": "test", "version": "1", "transport": "http", "holder": ""}
    assert health["calls"] == {"in_flight": 0, "limit": 1024}
    assert health["versions"]["nvim"] == "0.0.0"


async def test_get_needs_sessions_and_must_accept_a_stream(bridge: Served) -> None:
    head = {"Accept": "text/event-stream", "Authorization": f"Bearer {TOKEN}", "Mcp-Session-Id": "x"}
    for method in ("GET", "DELETE"):
        assert await status(bridge, method, "/mcp", head | {"MCP-Protocol-Version": STATELESS}) == 405
    assert await status(bridge, "GET", "/mcp", head | {"Accept": "application/json"}) == 406


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, 200),
        *(({"Authorization": value}, 401) for value in (None, "Bearer " + "x" * len(TOKEN))),
        *(({"Origin": "https://evil.example"}, 403), ({"Host": "evil.example"}, 403)),
        *(({"Content_Type": "text/plain"}, 415), ({"Content_Encoding": "gzip"}, 415)),
        ({"Accept": "text/plain"}, 406),
    ],
)
async def test_each_request_is_checked(bridge: Served, changes: dict[str, str | None], expected: int) -> None:
    body, session = tcp.ping(await bridge.initialize())
    async with bridge.connection() as (reader, writer), asyncio.timeout(10):
        for change, status in (*[({}, 200)] * 3, (changes, expected)):
            writer.write(tcp.request(bridge, body, session, **change))
            answer = await tcp.read(reader)
            assert answer
            assert answer.status == status
