"""What real clients do that no specification asks of them: each was seen in one that people use.

Raw HTTP against the whole chain, for habits that the clients of the other files do not have.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from tests.support.bridge import Bridge
from tests.support.raw import BOTH, SESSION_VERSION, STATELESS_VERSION, Raw, text_of

pytestmark = pytest.mark.asyncio(loop_scope="session")

SOON = 5  # seconds; clients that probe give up after ten, or never
META = {
    "io.modelcontextprotocol/protocolVersion": STATELESS_VERSION,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "habits", "version": "1"},
}


@pytest_asyncio.fixture(loop_scope="session")
async def raw(bridge: Bridge) -> AsyncIterator[Raw]:
    """A client without a session."""
    async with Raw(bridge) as client:
        yield client


async def sessions(raw: Raw) -> int:
    """How many sessions the bridge holds."""
    status, health = await raw.send(None, method="GET", path="/health")
    assert status == 200
    count: int = health["sessions"]["count"]
    return count


class Sse:
    """The stream of the transport of 2024."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response

    async def event(self) -> tuple[str, str]:
        """Name and data of the next event."""
        name, data = "message", ""
        async with asyncio.timeout(SOON):
            async for raw_line in self.response.content:
                line = raw_line.decode().rstrip("\r\n")
                if line.startswith("event: "):
                    name = line[7:]
                elif line.startswith("data: "):
                    data = line[6:]
                elif not line and data:
                    return name, data
        raise AssertionError("the stream ended")

    async def answer(self, request_id: int) -> dict[str, Any]:
        """The answer to a request."""
        while True:
            message: dict[str, Any] = json.loads((await self.event())[1])
            if message.get("id") == request_id:
                return message


# Probes


async def test_discover_comes_first(raw: Raw) -> None:
    """`server/discover` before anything else is answered at once, with what this server speaks."""
    async with asyncio.timeout(SOON):
        status, answer = await raw.send(
            raw.message("server/discover", {"_meta": META}),
            MCP_Protocol_Version=STATELESS_VERSION,
            Mcp_Method="server/discover",
        )
    assert (status, answer["result"]["supportedVersions"]) == (200, [STATELESS_VERSION])


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, -32600),
        ({"MCP-Protocol-Version": SESSION_VERSION}, -32600),
        ({"MCP-Protocol-Version": STATELESS_VERSION}, -32602),
        ({"MCP-Protocol-Version": STATELESS_VERSION, "Mcp-Method": "server/discover"}, -32602),
    ],
    ids=["no headers", "version with sessions", "version alone", "no envelope"],
)
async def test_odd_discovers_are_refused_at_once(raw: Raw, headers: dict[str, str], code: int) -> None:
    """A probe that is not well-formed gets an error after which clients fall back, not silence."""
    async with asyncio.timeout(SOON):
        status, answer = await raw.send(raw.message("server/discover", {}), **headers)
    assert (status, answer["error"]["code"]) == (400, code)


async def test_get_before_initialize(raw: Raw) -> None:
    """A GET without a session is refused at once, and leaves nothing behind."""
    before = await sessions(raw)
    async with asyncio.timeout(SOON):
        for headers in ({}, {"MCP-Protocol-Version": SESSION_VERSION}):
            for accept in ("text/event-stream", BOTH, "*/*"):
                status, _ = await raw.send(None, method="GET", Accept=accept, **headers)
                assert status in (400, 405)
    assert await sessions(raw) == before


@pytest.mark.parametrize("token", ["right", "wrong", "none"])
async def test_no_oauth_here(raw: Raw, token: str) -> None:
    """Whoever looks for a login finds plain 404s, with or without a token, and never a page."""
    authorization = {"right": f"Bearer {raw.bridge.token}", "wrong": "Bearer x", "none": None}[token]
    for path in (
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-authorization-server",
        "/.well-known/oauth-authorization-server/mcp",
        "/.well-known/openid-configuration/mcp",
        "/mcp/.well-known/openid-configuration",
        "/mcp/.well-known/oauth-protected-resource",
    ):
        status, body = await raw.send(None, method="GET", path=path, Authorization=authorization)
        assert (status, body) == (404, "Not Found"), path
    status, body = await raw.send({"client_name": "x"}, path="/register", Authorization=authorization)
    assert (status, body) == (404, "Not Found")
    status, _ = await raw.send(raw.message("initialize"), path="/sse", Authorization=authorization)
    assert status == 405


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
async def test_no_token(raw: Raw, method: str) -> None:
    """Without a token everything else is 401, which names the scheme, at once."""
    for path in ("/mcp", "/", "/sse", "/messages"):
        if (method, path) in {
            ("POST", "/sse"),
            ("DELETE", "/sse"),
            ("GET", "/messages"),
            ("DELETE", "/messages"),
        }:
            continue  # 405 before anyone asks for the token
        async with (
            asyncio.timeout(SOON),
            raw.http.request(method, raw.bridge.url + path, headers={"Accept": BOTH}) as response,
        ):
            assert (response.status, response.headers["WWW-Authenticate"]) == (401, "Bearer"), path


# Headers


@pytest.mark.parametrize(
    "accept",
    [
        "text/event-stream, application/json",
        "application/json,text/event-stream",
        "application/json;q=0.9, text/event-stream;q=0.8, */*;q=0.1",
        "Application/JSON, Text/Event-Stream",
        "*/*",
    ],
)
async def test_accept_in_any_order(raw: Raw, accept: str) -> None:
    """What a client accepts is read, not compared."""
    await raw.initialize()
    status, answer = await raw.send(raw.call_message("test_echo", {"text": "x"}), Accept=accept)
    assert (status, text_of(answer["result"])) == (200, "x")


async def test_version_headers_come_and_go(raw: Raw) -> None:
    """`initialize` may carry a version in its header, and later requests may lack it."""
    params = {
        "protocolVersion": SESSION_VERSION,
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    }
    for version in (SESSION_VERSION, "2025-06-18", None):
        message = raw.message("initialize", params)
        status, answer = await raw.send(message, MCP_Protocol_Version=version)
        assert (status, answer["result"]["protocolVersion"]) == (200, SESSION_VERSION)
    await raw.initialize()
    for version in (SESSION_VERSION, None):
        status, answer = await raw.send(raw.message("tools/list"), MCP_Protocol_Version=version)
        assert status == 200, answer
        assert answer["result"]["tools"]


async def test_extra_metadata(raw: Raw) -> None:
    """Keys of `_meta` that only their sender knows, and tokens of either type, are no reason to refuse."""
    await raw.initialize()
    for token in (7, "seven"):
        message = raw.call_message(
            "count",
            {"steps": 1},
            **{
                "progressToken": token,
                "claudecode/toolUseId": "toolu_1",
                "x-codex-turn-metadata": {"turn": [1, None]},
            },
        )
        async with raw.http.post(f"{raw.bridge.url}/mcp", json=message, headers=raw.headers()) as response:
            assert response.status == 200
            lines = [line[6:] for line in (await response.text()).splitlines() if line.startswith("data: {")]
        progress, answer = (json.loads(line) for line in lines)
        assert progress["params"]["progressToken"] == token
        assert text_of(answer["result"]) == "counted"


# Sessions


async def test_late_cancel(raw: Raw) -> None:
    """A cancel of what has been answered, or was never asked, is taken and does nothing."""
    await raw.initialize()
    message = raw.call_message("test_echo", {"text": "x"})
    await raw.send(message)
    for request_id in (message["id"], 4711, "never"):
        params = {"requestId": request_id, "reason": "AbortError"}
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
        assert (await raw.send(cancel))[0] == 202
    assert text_of(await raw.call("test_echo", {"text": "still there"})) == "still there"


async def test_sessions_that_nobody_ends(raw: Raw) -> None:
    """Clients that never say goodbye cost a bounded number of sessions, and all of them can come back."""
    ids = [await raw.initialize() for _ in range(70)]
    assert await sessions(raw) == 64
    for raw.session in (ids[0], ids[-1], ids[35]):
        assert text_of(await raw.call("test_echo", {"text": "x"})) == "x"
    assert await sessions(raw) == 64


# The transport of 2024


async def open_sse(raw: Raw) -> tuple[Sse, str]:
    """Its stream, and the path for messages."""
    headers = raw.headers(Accept="*/*")
    stream = Sse(await raw.http.get(f"{raw.bridge.url}/sse", headers=headers))
    assert stream.response.status == 200
    name, path = await stream.event()
    assert name == "endpoint"
    assert path.startswith("/messages?session_id=")
    params = {
        "protocolVersion": SESSION_VERSION,
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    }
    message = raw.message("initialize", params)
    assert (await raw.send(message, path=path, Accept="*/*"))[0] == 202
    assert "result" in await stream.answer(message["id"])
    done = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert (await raw.send(done, path=path, Accept="*/*"))[0] == 202
    return stream, path


async def post_and_reset(raw: Raw, path: str, message: dict[str, Any]) -> None:
    """POST, and reset the connection when the head of the answer is there."""
    body = json.dumps(message).encode()
    head = [
        f"POST {path} HTTP/1.1",
        f"Host: 127.0.0.1:{raw.bridge.port}",
        f"Authorization: Bearer {raw.bridge.token}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
    ]
    reader, writer = await asyncio.open_connection("127.0.0.1", raw.bridge.port)
    writer.write("\r\n".join(head).encode() + b"\r\n\r\n" + body)
    answer = await reader.readuntil(b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 202 ")
    # Linger 0: the end of the connection is a reset, whatever is still to be read.
    linger = struct.pack("ii", 1, 0)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    writer.close()


async def test_messages_whose_connection_is_reset(raw: Raw) -> None:
    """A message counts once it is accepted, even if the connection is gone before the answer's body."""
    stream, path = await open_sse(raw)
    for number in range(20):
        message = raw.call_message("test_echo", {"text": f"reset {number}"})
        await post_and_reset(raw, path, message)
        answer = await stream.answer(message["id"])
        assert text_of(answer["result"]) == f"reset {number}"
    stream.response.close()


async def test_a_stream_that_goes_takes_its_calls_along(raw: Raw) -> None:
    """The session ends with its stream, and so do the tools that it had started."""
    await raw.bridge.nvim.lua("Seen.cancelled = {}")
    stream, path = await open_sse(raw)
    message = raw.call_message("hold")
    assert (await raw.send(message, path=path))[0] == 202
    await raw.bridge.nvim.wait_for("return Seen.running == 1")
    stream.response.close()
    await raw.bridge.nvim.wait_for("return Seen.running == 0")
    assert await raw.bridge.nvim.lua("return Seen.cancelled") == ["disconnected"]
    assert (await raw.send(raw.message("ping"), path=path))[0] == 404
