"""Example endpoints, and an agent that connects to one."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp

from mcp_tools_nvim.values import AgentEndpoint, ServerInfo
from tests.support.served import INITIALIZED, JSON_AND_SSE, LEGACY, Served, events

SERVER = ServerInfo("made-up-editor", "7", "Made up")
HTTP = AgentEndpoint("web", "endpoint-" + "h" * 40, "http", "authorization", SERVER, scheme="bearer")
SOCKET = AgentEndpoint("socket", "endpoint-" + "w" * 40, "websocket", "x-made-up", SERVER, subprotocol="mcp")


PIPE = AgentEndpoint("pipe", "endpoint-" + "u" * 40, "unix", "authorization", SERVER, scheme="nonce")


def unix_endpoint(path: Path | str) -> AgentEndpoint:
    """An endpoint with this socket."""
    return replace(PIPE, socket=str(path))


def request(method: str, params: dict[str, Any] | None = None, id_: int = 2) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": params or {}}


ABOUT = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "agent", "version": "3"}}
INITIALIZE = request("initialize", ABOUT, 1)


def call(tool: str, id_: int = 2, **arguments: Any) -> dict[str, Any]:
    """A `tools/call`."""
    return request("tools/call", {"name": tool, "arguments": arguments}, id_)


class Agent:
    """A client of an endpoint, over HTTP at the port or at a unix socket."""

    def __init__(self, http: aiohttp.ClientSession, url: str, credential: str) -> None:
        self.http = http
        self.url = url
        self.headers = {"Authorization": credential}
        self.session: str | None = None

    def head(self, **more: str) -> dict[str, str]:
        head = {"Accept": JSON_AND_SSE, "Content-Type": "application/json"} | self.headers
        if self.session is not None:
            head["Mcp-Session-Id"] = self.session
        return head | {name.replace("_", "-"): value for name, value in more.items()}

    async def post(self, body: Any, path: str = "/mcp", **more: str) -> aiohttp.ClientResponse:
        data = json.dumps(body).encode()
        return await self.http.post(self.url + path, data=data, headers=self.head(**more))

    async def status(self, body: Any, **more: str) -> int:
        async with await self.post(body, **more) as response:
            return response.status

    async def ask(self, body: dict[str, Any], **more: str) -> dict[str, Any]:
        async with await self.post(body, **more) as response:
            assert response.status == 200, await response.text()
            return await response.json()

    async def initialize(self, **more: str) -> dict[str, Any]:
        async with await self.post(INITIALIZE, **more) as response:
            assert response.status == 200, await response.text()
            self.session = response.headers["Mcp-Session-Id"]
            result: dict[str, Any] = (await response.json())["result"]
        assert await self.status(INITIALIZED) == 202
        return result

    async def session_key(self) -> str:
        """The key under which tools know this session."""
        return (await self.ask(call("place")))["result"]["content"][0]["text"]

    async def get(self, **more: str) -> aiohttp.ClientResponse:
        """The session's stream."""
        head = self.head(**more) | {"Accept": "text/event-stream"}
        return await self.http.get(self.url + "/mcp", headers=head)

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[AsyncIterator[Any]]:
        """The messages of the session's stream."""
        async with await self.get() as response:
            yield (message async for _, _, message in events(response) if message)

    async def delete(self) -> int:
        """The status of the deletion of the session."""
        async with self.http.delete(self.url + "/mcp", headers=self.head()) as response:
            return response.status


@asynccontextmanager
async def agent_at_port(bridge: Served, endpoint: AgentEndpoint = HTTP) -> AsyncIterator[Agent]:
    """An agent that holds the token of an endpoint at the port."""
    async with aiohttp.ClientSession() as http:
        yield Agent(http, bridge.url, f"Bearer {endpoint.token}")


@asynccontextmanager
async def agent_at_socket(endpoint: AgentEndpoint) -> AsyncIterator[Agent]:
    """An agent that holds the token of a unix socket."""
    connector = aiohttp.UnixConnector(str(endpoint.socket))
    async with aiohttp.ClientSession(connector=connector) as http:
        yield Agent(http, "http://localhost", f"Nonce {endpoint.token}")


def add_tools(bridge: Served, agent: str) -> None:
    """Adds a tool of the agent, a common tool and a resource."""
    bridge.editor.add_tool("echo", lambda ctx, arguments: arguments.get("text", "nothing"))
    bridge.editor.add_tool("place", lambda ctx, arguments: ctx.request.sender.session, agent=agent)
    bridge.editor.add_resource("nvim://thing", lambda ctx, arguments: "thing")
