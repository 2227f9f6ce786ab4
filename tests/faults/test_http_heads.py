"""Requests whose head is wrong: who may not speak, where nothing is, what is not understood."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.bridge import Bridge
from tests.support.raw import BOTH, STATELESS_VERSION, Raw
from tests.support.tcp import Answer, ping, request, talk

pytestmark = pytest.mark.asyncio(loop_scope="session")

PATHS = {"/mcp": "POST", "/": "POST", "/messages": "POST", "/sse": "GET", "/health": "GET"}


async def once(bridge: Bridge, data: bytes) -> Answer:
    """The one answer to one request."""
    (answer,) = await talk(bridge, data, answers=1)
    assert "traceback" not in answer.body.decode("utf-8", "replace").lower()
    assert "access-control" not in answer.head.lower()
    return answer


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1.evil.example:{port}",
        "localhost.:{port}",
        "127.0.0.1:{port}@evil.example",
        "127.0.0.2:{port}",
        "0.0.0.0:{port}",
        "[::2]:{port}",
        "127.0.0.1:{port}:80",
        "",
        None,
    ],
)
async def test_foreign_hosts(shared: Bridge, host: str | None) -> None:
    """A Host that is not this machine is 403 on every path, token or not, known path or not."""
    named = None if host is None else host.format(port=shared.port)
    for path, method in (PATHS | {"/nowhere": "GET", "/register": "POST"}).items():
        answer = await once(shared, request(shared, line=f"{method} {path} HTTP/1.1", Host=named))
        # Without a Host it is not HTTP/1.1 at all, and the parser may be the one that refuses.
        assert answer.status == 403 if named is not None else answer.status in (400, 403), path


async def test_two_hosts(shared: Bridge) -> None:
    """A second Host is no help."""
    answer = await once(shared, request(shared, b"", "Host: evil.example"))
    assert answer.status in (400, 403)


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "http://evil.example",
        "http://evil.example:{port}",
        "http://127.0.0.1:1",
        "http://localhost",
        "https://127.0.0.1:{port}",
        "http://127.0.0.1.evil.example:{port}",
        "http://user@127.0.0.1:{port}",
        "file://",
        "vscode-webview://x",
        "127.0.0.1:{port}",
        "",
    ],
)
async def test_foreign_origins(shared: Bridge, origin: str) -> None:
    """A page of elsewhere is 403 on every path, and never allowed to read the answer."""
    for path, method in PATHS.items():
        line = f"{method} {path} HTTP/1.1"
        answer = await once(shared, request(shared, line=line, Origin=origin.format(port=shared.port)))
        assert answer.status == 403, path


@pytest.mark.parametrize(
    "origin", ["http://127.0.0.1:{port}", "http://localhost:{port}", "http://[::1]:{port}"]
)
async def test_our_own_origin(shared: Bridge, client: Raw, origin: str) -> None:
    """Loopback with our own port may speak."""
    body, session = ping(client.session)
    answer = await once(shared, request(shared, body, session, Origin=origin.format(port=shared.port)))
    assert answer.status == 200


@pytest.mark.parametrize(
    "given",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        "Bearer {token}x",
        "Bearer {cut}",
        "Bearer {upper}",
        "Basic {token}",
        "Basic Ojp0b2tlbg==",
        "{token}",
        "Token {token}",
        "Bearer {token}, Bearer {token}",
        "Bearer \udcff\udcfe",
    ],
)
async def test_tokens(shared: Bridge, given: str | None) -> None:
    """No token, another one, another scheme: 401 that says which scheme, before the body counts."""
    token = shared.token
    value = None if given is None else given.format(token=token, cut=token[:-1], upper=token.upper())
    for path, method in PATHS.items():
        line = f"{method} {path} HTTP/1.1"
        answer = await once(shared, request(shared, b"{not json", line=line, Authorization=value))
        if path == "/health" and value is None:
            assert (answer.status, answer.json) == (200, {"status": "ok"})
        else:
            assert answer.status == 401, path
            assert "www-authenticate: bearer\r\n" in answer.head.lower()
            assert token not in answer.head + answer.body.decode()


async def test_two_tokens(shared: Bridge) -> None:
    """The right one beside a wrong one is no token."""
    answer = await once(shared, request(shared, b"", "Authorization: Bearer wrong"))
    assert answer.status == 401


@pytest.mark.parametrize(
    "path",
    [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-authorization-server",
        "/mcp/.well-known/openid-configuration",
        "/register",
        "/authorize",
        "/token",
        "/favicon.ico",
        "/mcp/",
        "//mcp",
        "/mcp/../mcp",
        "/%6dcp/x",
        "/mcp%00",
        "/" + "a" * 5000,
    ],
)
async def test_paths_that_are_not_there(shared: Bridge, path: str) -> None:
    """A plain 404 without token, whatever the method: no client may think that it should log in."""
    for method in ("GET", "POST", "OPTIONS"):
        line = f"{method} {path} HTTP/1.1"
        answer = await once(shared, request(shared, line=line, Authorization=None))
        assert (answer.status, answer.body) == (404, b"Not Found"), method
        assert "www-authenticate" not in answer.head.lower()


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("OPTIONS", "/mcp"),
        ("OPTIONS", "/"),
        ("OPTIONS", "/sse"),
        ("OPTIONS", "/health"),
        ("PUT", "/mcp"),
        ("PATCH", "/mcp"),
        ("TRACE", "/mcp"),
        ("BREW", "/mcp"),
        ("POST", "/sse"),
        ("DELETE", "/sse"),
        ("GET", "/messages"),
        ("POST", "/health"),
    ],
)
async def test_methods(shared: Bridge, method: str, path: str) -> None:
    """Another method is 405 with the right ones named, before the token."""
    for token in (None, f"Bearer {shared.token}"):
        line = f"{method} {path} HTTP/1.1"
        answer = await once(shared, request(shared, line=line, Authorization=token))
        # A method that HTTP does not know may be refused by the parser.
        assert answer.status == 405 or (method == "BREW" and answer.status == 400)
        assert method == "BREW" or "allow: " in answer.head.lower()


@pytest.mark.parametrize(
    ("field", "value", "status"),
    [
        ("Content_Type", None, 415),
        ("Content_Type", "text/plain", 415),
        ("Content_Type", "application/x-www-form-urlencoded", 415),
        ("Content_Type", "application/jsonp", 415),
        ("Content_Type", "multipart/form-data; boundary=x", 415),
        ("Content_Type", "Application/JSON; charset=utf-8", 200),
        ("Accept", "application/json", 406),
        ("Accept", "text/event-stream", 406),
        ("Accept", "text/html", 406),
        ("Accept", "application/json, text/event-stream;q=0", 406),
        ("Accept", "*/*", 200),
        ("Accept", None, 200),
        ("MCP_Protocol_Version", "2025-06-18", 200),
        ("MCP_Protocol_Version", "1999-01-01", 400),
        ("MCP_Protocol_Version", "\u2603", 400),
    ],
)
async def test_what_is_not_understood(
    shared: Bridge, client: Raw, field: str, value: str | None, status: int
) -> None:
    """Content-Type, Accept and version are checked, each with its status."""
    body, session = ping(client.session)
    fields: dict[str, Any] = {field: value}
    answer = await once(shared, request(shared, body, session, **fields))
    assert answer.status == status


async def test_stateless_heads_that_contradict_the_body(shared: Bridge) -> None:
    """In the stateless era the head must name what the body says."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": STATELESS_VERSION,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": "nvim_mark", "arguments": {}, "_meta": meta}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    right = {
        "MCP_Protocol_Version": STATELESS_VERSION,
        "Mcp_Method": "tools/call",
        "Mcp_Name": "nvim_mark",
    }
    wrong: list[dict[str, Any]] = [
        {"Mcp_Method": "tools/list"},
        {"Mcp_Name": "nvim_echo"},
        {"Mcp_Method": None},
    ]
    for change in wrong:
        answer = await once(shared, request(shared, body, **right | change))
        assert answer.status == 400, change
        assert "error" in answer.json
    assert await shared.nvim.lua("return Seen.late") == 0
    assert (await once(shared, request(shared, body, **right))).status == 200
    assert await shared.nvim.lua("return Seen.late") == 1


async def test_sessions_that_are_missing_or_unknown(shared: Bridge, client: Raw) -> None:
    """No id is 400, an unknown one 404, in every method; DELETE twice is 404."""
    body, _ = ping(None)
    for method in ("POST", "GET", "DELETE"):
        line = f"{method} /mcp HTTP/1.1"
        data = body if method == "POST" else b""
        assert (await once(shared, request(shared, data, line=line, Accept=BOTH))).status == 400
        for id_ in ("unknown", "a.b", ".", "é", f"{client.session}x"):
            answer = await once(shared, request(shared, data, f"Mcp-Session-Id: {id_}", line=line))
            assert answer.status == 404, (method, id_)
    for path in ("/messages", "/messages?session_id=", "/messages?session_id=x", "/messages?sessionId=x"):
        answer = await once(shared, request(shared, body, line=f"POST {path} HTTP/1.1"))
        assert answer.status == 404, path
    # An id of the other transport is none here.
    answer = await once(
        shared, request(shared, body, line=f"POST /messages?session_id={client.session} HTTP/1.1")
    )
    assert answer.status == 404


async def test_heads_that_are_too_large(shared: Bridge, client: Raw) -> None:
    """A field or a line of 100 kB, and 1 000 fields: refused, and the next request is served."""
    body, session = ping(client.session)
    for data in (
        request(shared, body, session, X_Large="x" * 100_000),
        request(shared, body, session, line=f"POST /mcp?{'x' * 100_000} HTTP/1.1"),
        request(shared, body, session, *(f"X-{n}: {'y' * 100}" for n in range(1000))),
    ):
        (answer,) = await talk(shared, data, answers=1)
        assert answer.status in (400, 413, 414, 431)
    assert (await client.send(client.message("ping")))[0] == 200


async def test_a_nonce_that_is_no_nonce(shared: Bridge) -> None:
    """`/health` proves the token for short nonces of any kind only, and tells nothing else."""
    for nonce, status in (("a" * 256, 200), ("a" * 257, 400), ("%F0%9F%98%80", 200), ("%FF", 200), ("", 200)):
        line = f"GET /health?nonce={nonce} HTTP/1.1"
        answer = await once(shared, request(shared, line=line, Authorization=None))
        assert answer.status == status, nonce
        if status == 200:
            assert set(answer.json) == {"status", "proof"}
