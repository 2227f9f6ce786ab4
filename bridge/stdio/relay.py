"""The relay: messages of an agent go to the bridge over HTTP, a line each; what comes back goes to stdout.

Receives: lines of JSON-RPC; the answers and streams of the bridge. Sends: each to the other side.
Does not know about: what the messages mean, beyond `initialize` and the session that it begins.

The session outlives a restart of the bridge: its stream is opened again, and only what was in flight fails.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp

from .. import jsonrpc

SESSION = "Mcp-Session-Id"
ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}

GOODBYE_SECONDS = 2.0
"""For the end of the session: an agent that leaves waits for nobody, and the bridge lets idle ones go."""

RECONNECT_SECONDS = 1.0
"""Between attempts to open the stream again; a bridge that is started anew takes about that long."""

Write = Callable[[str], None]


class Relay:
    """See the head of this file.

    Args:
        http: has the token among its headers.
        url: of the bridge, ends in /mcp.
        write: takes a line for the agent.
    """

    def __init__(self, http: aiohttp.ClientSession, url: str, write: Write) -> None:
        self._http = http
        self._url = url
        self._write = write
        self._session: str | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def take(self, line: str) -> None:
        """One line of the agent; never waits."""
        try:
            message = json.loads(line)
        except ValueError:
            self._fail(None, jsonrpc.PARSE_ERROR, "Parse error")
            return
        first = isinstance(message, dict) and message.get("method") == "initialize"
        self._begin(self._post(line, message, first=first))

    async def close(self) -> None:
        """The agent is gone: so is its session."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._session is not None:
            with contextlib.suppress(aiohttp.ClientError, TimeoutError):
                async with asyncio.timeout(GOODBYE_SECONDS):
                    await self._http.delete(self._url, headers={SESSION: self._session})

    def _begin(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _headers(self) -> dict[str, str]:
        return ACCEPT | ({SESSION: self._session} if self._session else {})

    def _fail(self, id_: Any, code: int, text: str) -> None:
        self._write(json.dumps({"jsonrpc": "2.0", "id": id_, "error": {"code": code, "message": text}}))

    async def _post(self, line: str, message: Any, *, first: bool) -> None:
        waits = isinstance(message, dict) and "method" in message and "id" in message
        try:
            async with self._http.post(self._url, data=line.encode(), headers=self._headers()) as response:
                if first and response.ok and SESSION in response.headers:
                    self._session = response.headers[SESSION]
                    self._begin(self._listen())
                if response.content_type == "text/event-stream":
                    async for data in events(response):
                        self._write(data)
                elif response.content_type == "application/json":
                    self._write((await response.text()).strip())
                elif waits:
                    self._fail(message["id"], jsonrpc.INTERNAL_ERROR, f"HTTP {response.status}")
        except aiohttp.ClientError as error:
            if waits:
                self._fail(message["id"], jsonrpc.INTERNAL_ERROR, f"The editor cannot be reached: {error}")

    async def _listen(self) -> None:
        while True:
            with contextlib.suppress(aiohttp.ClientError):
                async with self._http.get(self._url, headers=self._headers()) as response:
                    if response.ok:
                        async for data in events(response):
                            self._write(data)
            await asyncio.sleep(RECONNECT_SECONDS)


async def events(response: aiohttp.ClientResponse) -> AsyncIterator[str]:
    """The data of the events of a stream that have any."""
    rest = b""
    async for chunk in response.content.iter_any():
        *whole, rest = (rest + chunk.replace(b"\r\n", b"\n")).split(b"\n\n")
        for event in whole:
            lines = [line[5:].strip() for line in event.split(b"\n") if line.startswith(b"data:")]
            if data := b"\n".join(lines):
                yield data.decode()
