"""Requests with wrong heads: foreign hosts and origins, tokens, paths, methods, header fields."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.bridge import Bridge
from tests.support.raw import BOTH, STATELESS_META, STATELESS_VERSION, Raw
from tests.support.tcp import Answer, ping, request, talk

pytestmark = pytest.mark.asyncio(loop_scope="session")

PATHS = {"/mcp": "POST", "/": "POST", "/messages": "POST", "/sse": "GET", "/health": "GET"}


async def once(bridge: Bridge, data: bytes) -> Answer:
    (answer,) = await talk(bridge, data, answers=1)
    assert "traceback" not in answer.body.decode("utf-8", "replace").lower()
    assert "access-control" not in answer.head.lower()
    return answer


FOREIGN_HOSTS = """
evil.example evil.example:{port} 127.0.0.1.evil.example:{port} localhost.:{port}
127.0.0.1:{port}@evil.example 127.0.0.2:{port} 0.0.0.0:{port} [::2]:{port} 127.0.0.1:{port}:80
"""


@pytest.mark.parametrize("host", [*FOREIGN_HOSTS.split(), "", None])
async def test_a_foreign_host_is_403_on_every_path(shared: Bridge, host: str | None) -> None:
    value = None if host is None else host.format(port=shared.port)
    for path, method in (PATHS | {"/nowhere": "GET", "/register": "POST"}).items():
        answer = await once(shared, request(shared, line=f"{method} {path} HTTP/1.1", Host=value))
        # A request without a Host is not HTTP/1.1: the parser may refuse it.
        assert answer.status == 403 if value is not None else answer.status in (400, 403), path


async def test_a_second_host_is_refused(shared: Bridge) -> None:
    answer = await once(shared, request(shared, b"", "Host: evil.example"))
    assert answer.status in (400, 403)


FOREIGN_ORIGINS = """
null http://evil.example http://evil.example:{port} http://127.0.0.1:1 http://localhost
https://127.0.0.1:{port} http://127.0.0.1.evil.example:{port} http://user@127.0.0.1:{port} file://
vscode-webview://x 127.0.0.1:{port}
"""


@pytest.mark.parametrize("origin", [*FOREIGN_ORIGINS.split(), ""])
async def test_a_foreign_origin_is_403_on_every_path(shared: Bridge, origin: str) -> None:
    for path, method in PATHS.items():
        line = f"{method} {path} HTTP/1.1"
        answer = await once(shared, request(shared, line=line, Origin=origin.format(port=shared.port)))
        assert answer.status == 403, path


@pytest.mark.parametrize("origin", ["127.0.0.1:{port}", "localhost:{port}", "[::1]:{port}"])
async def test_loopback_with_the_bridges_port_is_allowed(shared: Bridge, client: Raw, origin: str) -> None:
    body, session = ping(client.session)
    own = f"http://{origin.format(port=shared.port)}"
    assert (await once(shared, request(shared, body, session, Origin=own))).status == 200


@pytest.mark.parametrize(
    "header",
    [
        *(None, "", "Bearer", "Bearer ", "Bearer wrong", "Bearer {token}x", "Bearer {cut}", "Bearer {upper}"),
        *("Basic {token}", "Basic Ojp0b2tlbg==", "{token}", "Token {token}"),
        *("Bearer {token}, Bearer {token}", "Bearer \udcff\udcfe"),
    ],
)
async def test_any_other_token_is_401_before_the_body_is_read(shared: Bridge, header: str | None) -> None:
    token = shared.token
    value = None if header is None else header.format(token=token, cut=token[:-1], upper=token.upper())
    for path, method in PATHS.items():
        line = f"{method} {path} HTTP/1.1"
        answer = await once(shared, request(shared, b"{not json", line=line, Authorization=value))
        if path == "/health" and value is None:
            assert (answer.status, answer.json) == (200, {"status": "ok"})
        else:
            assert answer.status == 401, path
            assert "www-authenticate: bearer\r\n" in answer.head.lower()
            assert token not in answer.head + answer.body.decode()


async def test_a_second_wrong_token_is_refused(shared: Bridge) -> None:
    answer = await once(shared, request(shared, b"", "Authorization: Bearer wrong"))
    assert answer.status == 401


UNKNOWN_PATHS = """
/.well-known/oauth-protected-resource /.well-known/oauth-protected-resource/mcp
/.well-known/oauth-authorization-server /mcp/.well-known/openid-configuration /register /authorize
/token /favicon.ico /mcp/ //mcp /mcp/../mcp /%6dcp/x /mcp%00
"""


@pytest.mark.parametrize("path", [*UNKNOWN_PATHS.split(), "/" + "a" * 5000])
async def test_an_unknown_path_is_a_plain_404_that_asks_for_no_login(shared: Bridge, path: str) -> None:
    for method in ("GET", "POST", "OPTIONS"):
        line = f"{method} {path} HTTP/1.1"
        answer = await once(shared, request(shared, line=line, Authorization=None))
        assert (answer.status, answer.body) == (404, b"Not Found"), method
        assert "www-authenticate" not in answer.head.lower()


@pytest.mark.parametrize(
    "line",
    [
        *("OPTIONS /mcp", "OPTIONS /", "OPTIONS /sse", "OPTIONS /health", "PUT /mcp", "PATCH /mcp"),
        *("TRACE /mcp", "BREW /mcp", "POST /sse", "DELETE /sse", "GET /messages", "POST /health"),
    ],
)
async def test_a_wrong_method_is_405_whatever_the_token(shared: Bridge, line: str) -> None:
    for token in (None, f"Bearer {shared.token}"):
        answer = await once(shared, request(shared, line=f"{line} HTTP/1.1", Authorization=token))
        # The parser may refuse a method that HTTP does not know.
        assert answer.status == 405 or ("BREW" in line and answer.status == 400)
        assert "BREW" in line or "allow: " in answer.head.lower()


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
async def test_content_type_accept_and_version_are_checked(
    shared: Bridge, client: Raw, field: str, value: str | None, status: int
) -> None:
    body, session = ping(client.session)
    fields: dict[str, Any] = {field: value}
    answer = await once(shared, request(shared, body, session, **fields))
    assert answer.status == status


async def test_stateless_heads_must_match_the_body(shared: Bridge) -> None:
    params = {"name": "nvim_mark", "arguments": {}, "_meta": STATELESS_META}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    right: dict[str, Any] = {"Mcp_Method": "tools/call", "Mcp_Name": "nvim_mark"}
    right["MCP_Protocol_Version"] = STATELESS_VERSION
    for change in ({"Mcp_Method": "tools/list"}, {"Mcp_Name": "nvim_echo"}, {"Mcp_Method": None}):
        answer = await once(shared, request(shared, body, **right | change))
        assert answer.status == 400, change
        assert "error" in answer.json
    assert await shared.nvim.lua("return Seen.late") == 0
    assert (await once(shared, request(shared, body, **right))).status == 200
    assert await shared.nvim.lua("return Seen.late") == 1


async def test_a_missing_session_id_is_400_and_an_unknown_one_404(shared: Bridge, client: Raw) -> None:
    body, _ = ping(None)
    for method in ("POST", "GET", "DELETE"):
        line = f"{method} /mcp HTTP/1.1"
        data = body if method == "POST" else b""
        assert (await once(shared, request(shared, data, line=line, Accept=BOTH))).status == 400
        for id_ in ("unknown", "a.b", ".", "é", f"{client.session}x"):
            answer = await once(shared, request(shared, data, f"Mcp-Session-Id: {id_}", line=line))
            assert answer.status == 404, (method, id_)
    other_transport = f"?session_id={client.session}"
    for query in ("", "?session_id=", "?session_id=x", "?sessionId=x", other_transport):
        answer = await once(shared, request(shared, body, line=f"POST /messages{query} HTTP/1.1"))
        assert answer.status == 404, query


async def test_large_heads_are_refused_and_the_next_request_is_served(shared: Bridge, client: Raw) -> None:
    body, session = ping(client.session)
    for data in (
        request(shared, body, session, X_Large="x" * 100_000),
        request(shared, body, session, line=f"POST /mcp?{'x' * 100_000} HTTP/1.1"),
        request(shared, body, session, *(f"X-{n}: {'y' * 100}" for n in range(1000))),
    ):
        (answer,) = await talk(shared, data, answers=1)
        assert answer.status in (400, 413, 414, 431)
    assert (await client.send(client.message("ping")))[0] == 200


async def test_health_proves_the_token_for_short_nonces_only(shared: Bridge) -> None:
    for nonce, status in (("a" * 256, 200), ("a" * 257, 400), ("%F0%9F%98%80", 200), ("%FF", 200), ("", 200)):
        line = f"GET /health?nonce={nonce} HTTP/1.1"
        answer = await once(shared, request(shared, line=line, Authorization=None))
        assert answer.status == status, nonce
        if status == 200:
            assert set(answer.json) == {"status", "proof"}
