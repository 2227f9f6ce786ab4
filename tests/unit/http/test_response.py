"""Answers in one piece, and those that become a stream."""

from __future__ import annotations

import asyncio
import gc
import json
import re
from typing import Any

import pytest
from aiohttp import ClientSession, web

from mcp_tools_nvim.http.response import PING_SECONDS, DeferredResponse, Responses
from mcp_tools_nvim.mcp.dispatch import Dispatch
from mcp_tools_nvim.sessions.session import Exchange
from tests.support.memory import ToolContext
from tests.support.served import TOKEN, Served, bare, served


def repeat(context: ToolContext, arguments: dict[str, int]) -> str:
    return "x" * arguments["times"]


async def ask(
    bridge: Served, session: str, times: int, version: str = "1.1", **fields: str
) -> tuple[str, bytes, bool]:
    """A call over a connection of its own: the answer's head and body, and whether the connection stays."""
    params = {"name": "nvim_repeat", "arguments": {"times": times}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    head = {
        "Host": "localhost",
        "Authorization": f"Bearer {TOKEN}",
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        "Mcp-Session-Id": session,
    } | fields
    lines = [f"POST /mcp HTTP/{version}", *(f"{name}: {value}" for name, value in head.items())]
    reader, writer = await asyncio.open_connection("127.0.0.1", bridge.port, limit=1 << 22)
    try:
        async with asyncio.timeout(5):
            writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
            answer = (await reader.readuntil(b"\r\n\r\n")).decode()
            length = re.search(r"Content-Length: (\d+)", answer)
            assert length
            content = await reader.readexactly(int(length[1]))
            writer.write(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            return answer, content, bool(await reader.read(1))
    finally:
        writer.close()


@pytest.mark.parametrize(
    ("version", "connection"),
    [("1.1", "keep-alive"), ("1.1", "close"), ("1.0", "close"), ("1.0", "keep-alive")],
)
async def test_the_client_says_whether_the_connection_stays_open(version: str, connection: str) -> None:
    """Old clients, and those that ask for the end of the connection, get what they ask for."""
    async with served() as bridge:
        bridge.editor.add_tool("repeat", repeat)
        session = await bridge.initialize()
        head, body, stays = await ask(bridge, session, 5, version, Connection=connection)
        assert head.startswith(f"HTTP/{version} 200 OK\r\n")
        assert json.loads(body)["result"]["content"][0]["text"] == "xxxxx"
        assert stays == (connection == "keep-alive")
        assert ("keep-alive" in head) == (stays and version == "1.0")


async def test_a_long_silence_becomes_a_stream() -> None:
    """Its pings keep the connection open; before that it is nothing but a response."""
    streamed: list[bool] = []

    async def handle(request: Any) -> web.StreamResponse:
        response = DeferredResponse(request, Responses())
        for now in (100.0, 100.0 + PING_SECONDS - 0.1, 100.0 + PING_SECONDS):
            response.check(now)
            streamed.append(response.outbox is not None)
        try:
            return await response.finish(b"{}")
        finally:
            response.close()

    async with bare(handle) as url, ClientSession() as http, http.post(url) as answer:
        assert answer.content_type == "text/event-stream"
        assert await answer.text() == "event: message\ndata: {}\n\n"
    assert streamed == [False, False, True]


@pytest.mark.parametrize("stateless", [False, True])
async def test_a_call_leaves_nothing_to_collect(stateless: bool) -> None:
    """With its last reader a request goes, body and all; no circle holds it until a collection."""
    async with served() as bridge:
        bridge.editor.add_tool("repeat", repeat)
        session = await bridge.initialize()
        params = {"name": "nvim_repeat", "arguments": {"times": 3}}
        gc.collect()
        gc.disable()
        try:
            for _ in range(3):
                if stateless:
                    await (await bridge.post_stateless("tools/call", params)).read()
                else:
                    await bridge.ask(session, "tools/call", params)
            await bridge.http.get(bridge.url + "/health")  # aiohttp's loop holds the last one until the next
            left = [
                each for each in gc.get_objects() if isinstance(each, DeferredResponse | Dispatch | Exchange)
            ]
        finally:
            gc.enable()
        assert left == []
