"""A raw MCP client, for requests that no real client sends."""

from __future__ import annotations

import asyncio
import itertools
import json
from typing import Any, Self

import aiohttp

from .bridge import Bridge

BOTH = "application/json, text/event-stream"
SESSION_VERSION = "2025-11-25"
STATELESS_VERSION = "2026-07-28"
STATELESS_META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": STATELESS_VERSION,
    "io.modelcontextprotocol/clientCapabilities": {},
}
"""`_meta` of a request without a session."""


def initialize_params(version: str = SESSION_VERSION, **capabilities: Any) -> dict[str, Any]:
    """Parameters of `initialize`."""
    client = {"name": "raw", "version": "1"}
    return {"protocolVersion": version, "capabilities": capabilities, "clientInfo": client}


def cancel_of(request_id: Any) -> dict[str, Any]:
    """The notification that cancels a request."""
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request_id}}


class Raw:
    """Sends requests with valid headers by default; has a session after `initialize`."""

    def __init__(self, bridge: Bridge) -> None:
        self.bridge = bridge
        self.session: str | None = None
        self.ids = itertools.count(1)

    async def __aenter__(self) -> Self:
        self.http = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.http.close()

    def headers(self, **changes: str | None) -> dict[str, str]:
        """Valid headers with changes; `_` in a name means `-`, None removes one."""
        valid: dict[str, str | None] = {
            "Authorization": f"Bearer {self.bridge.token}",
            "Accept": BOTH,
            "Content-Type": "application/json",
            "Mcp-Session-Id": self.session,
        }
        valid |= {name.replace("_", "-"): value for name, value in changes.items()}
        return {name: value for name, value in valid.items() if value is not None}

    def message(self, method: str, params: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
        """A JSON-RPC request with a new id."""
        message = {"jsonrpc": "2.0", "id": next(self.ids), "method": method, **changes}
        if params is not None:
            message["params"] = params
        return message

    async def send(
        self, body: Any, *, method: str = "POST", path: str = "/mcp", **headers: str | None
    ) -> tuple[int, Any]:
        """Status and body (JSON, the last event of a stream, or text) of one request."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        async with self.http.request(
            method, self.bridge.url + path, data=data, headers=self.headers(**headers)
        ) as response:
            text = await response.text()
            if response.content_type == "text/event-stream":
                data = [line[5:] for line in text.splitlines() if line.startswith("data:")]
                return response.status, json.loads([each for each in data if each.strip()][-1])
            try:
                return response.status, json.loads(text)
            except ValueError:
                return response.status, text

    async def initialize(
        self, version: str = SESSION_VERSION, capabilities: dict[str, Any] | None = None, query: str = ""
    ) -> str:
        """Opens a session; `query` is added to its URL."""
        params = initialize_params(version, **(capabilities or {}))
        self.session = None
        async with self.http.post(
            f"{self.bridge.url}/mcp{query}", json=self.message("initialize", params), headers=self.headers()
        ) as response:
            assert response.status == 200, await response.text()
            self.session = response.headers["Mcp-Session-Id"]
        status, _ = await self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert status == 202
        return self.session

    def call_message(self, tool: str, arguments: dict[str, Any] | None = None, **meta: Any) -> dict[str, Any]:
        """A `tools/call`."""
        params: dict[str, Any] = {"name": f"nvim_{tool}", "arguments": arguments or {}}
        if meta:
            params["_meta"] = meta
        return self.message("tools/call", params)

    async def call(self, tool: str, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
        """The result of a tool call in the session."""
        status, answer = await self.send(self.call_message(tool, arguments))
        assert status == 200, answer
        assert "result" in answer, answer
        return answer["result"]

    async def stateless(self, tool: str, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
        """The result of a stateless tool call."""
        message = self.call_message(tool, arguments)
        message["params"]["_meta"] = STATELESS_META
        status, answer = await self.send(
            message,
            Mcp_Session_Id=None,
            MCP_Protocol_Version=STATELESS_VERSION,
            Mcp_Method="tools/call",
            Mcp_Name=f"nvim_{tool}",
        )
        assert status == 200, answer
        return answer["result"]


def code_of(result: dict[str, Any]) -> str:
    """The error code of a tool result."""
    assert result.get("isError"), result
    return result["structuredContent"]["code"]


def text_of(result: dict[str, Any]) -> str:
    return "".join(block["text"] for block in result["content"] if block["type"] == "text")


async def begun(bridge: Bridge, count: int = 1) -> None:
    """Waits until `count` calls of the tool `hold` run in the editor."""
    await bridge.nvim.wait_for(f"return Seen.running == {count}")


async def within(seconds: float, awaitable: Any) -> Any:
    """The result of something that takes at most this time."""
    async with asyncio.timeout(seconds):
        return await awaitable
