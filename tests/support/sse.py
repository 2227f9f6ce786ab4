"""A raw client of the legacy transport."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Self

import aiohttp

from .bridge import Bridge


class LegacyStream:
    """An open stream; messages are posted to `path`."""

    def __init__(self, bridge: Bridge) -> None:
        self.bridge = bridge
        self.path = ""

    async def __aenter__(self) -> Self:
        self.http = aiohttp.ClientSession(
            headers=self.bridge.headers,
            timeout=aiohttp.ClientTimeout(total=60),
            connector=aiohttp.TCPConnector(limit=0),
        )
        self.response = await self.http.get(f"{self.bridge.url}/sse", headers={"Accept": "text/event-stream"})
        assert self.response.status == 200, await self.response.text()
        self.path = await self._data()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.response.close()
        await self.http.close()

    async def post(self, body: Any) -> int:
        """The status of one message."""
        async with self.http.post(self.bridge.url + self.path, json=body) as response:
            return response.status

    async def next(self, seconds: float = 3.0) -> dict[str, Any]:
        """The next message of the stream."""
        async with asyncio.timeout(seconds):
            return json.loads(await self._data())

    async def initialize(self) -> None:
        """Initializes the session."""
        who = {"name": "sse", "version": "1"}
        params = {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": who}
        message = {"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": params}
        assert await self.post(message) == 202
        assert (await self.next())["id"] == "init"
        assert await self.post({"jsonrpc": "2.0", "method": "notifications/initialized"}) == 202

    async def _data(self) -> str:
        while True:
            line = await self.response.content.readline()
            assert line, "the stream has ended"
            if line.startswith(b"data: "):
                return line[6:].decode().rstrip("\r\n")
