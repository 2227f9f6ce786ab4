"""A minimal MCP client for any server, over stdio or HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp

from tests.support import processes

VERSION = "2025-06-18"
"""A protocol version that every server supports."""
LONGEST_LINE = 32 * 1024 * 1024
UNKNOWN = -32601
END_SECONDS = 5
"""Time for a server to end after its input."""

Message = dict[str, Any]
Send = Callable[[Message], Awaitable[Message | None]]
"""Sends a message and returns the answer to a request."""


class FailedError(Exception):
    """A server gave no answer, or an error."""


class Asker:
    """A connected client.

    Args:
        send: sends a message.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self._ids = itertools.count(1)

    async def request(self, method: str, params: Message) -> Message:
        """The result of a request.

        Raises:
            FailedError: the answer is an error.
        """
        message = {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params}
        answer = await self._send(message)
        if answer is None or "result" not in answer:
            raise FailedError(f"{method}: {(answer or {}).get('error', 'the server is gone')}")
        result: Message = answer["result"]
        return result

    async def connect(self) -> None:
        """Initializes the connection."""
        hello = {
            "protocolVersion": VERSION,
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        }
        await self.request("initialize", hello)
        await self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    async def ask(self, tool: str, seconds: float = 60, **arguments: Any) -> str:
        """Call a tool.

        Args:
            tool: its name.
            seconds: timeout.
            arguments: of the tool.

        Returns:
            The text that a model reads.

        Raises:
            FailedError: it failed or timed out.
        """
        try:
            async with asyncio.timeout(seconds):
                result = await self.request("tools/call", {"name": tool, "arguments": arguments})
        except TimeoutError:
            raise FailedError(f"{tool}: no answer within {seconds:g} s") from None
        text = "\n".join(part["text"] for part in result["content"] if part["type"] == "text")
        if result.get("isError"):
            raise FailedError(f"{tool}: {text[:300]}")
        return text

    async def tools(self) -> set[str]:
        """The names of its tools."""
        names: set[str] = set()
        cursor = None
        while True:
            page = await self.request("tools/list", {"cursor": cursor} if cursor else {})
            names |= {tool["name"] for tool in page["tools"]}
            cursor = page.get("nextCursor")
            if not cursor:
                return names


class Lines:
    """A server that reads and writes lines."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._waiting: dict[int, asyncio.Future[Message | None]] = {}

    def write(self, message: Message) -> None:
        """Writes one line."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")

    async def send(self, message: Message) -> Message | None:
        """See `Send`."""
        self.write(message)
        if "id" not in message:
            return None
        answer = self._waiting[message["id"]] = asyncio.get_running_loop().create_future()
        return await answer

    async def read(self) -> None:
        """Reads answers until the server ends; its requests are refused."""
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            message = json.loads(line)
            if "method" not in message:
                answer = self._waiting.pop(message["id"], None)
                if answer and not answer.done():
                    answer.set_result(message)
            elif "id" in message:
                self.write(
                    {"jsonrpc": "2.0", "id": message["id"], "error": {"code": UNKNOWN, "message": "no"}}
                )
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_result(None)


@contextlib.asynccontextmanager
async def over_stdio(command: list[str], env: dict[str, str], cwd: Path, log: Path) -> AsyncIterator[Asker]:
    """A server that is started here and logs to a file."""
    pipe = asyncio.subprocess.PIPE
    with log.open("w") as stream:
        options = {"stdin": pipe, "stdout": pipe, "stderr": stream, "limit": LONGEST_LINE}
        process = await processes.start(*command, env=env, cwd=cwd, **options)
        lines = Lines(process)
        reading = asyncio.create_task(lines.read())
        try:
            asker = Asker(lines.send)
            await asker.connect()
            yield asker
        finally:
            assert process.stdin is not None
            process.stdin.close()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), END_SECONDS)
            processes.end(process.pid)  # with its children
            await process.wait()
            reading.cancel()


def answer_in(body: str, kind: str) -> Message:
    """The answer in a body: the body itself, or the last event of a stream."""
    if kind == "text/event-stream":
        body = [line[5:] for line in body.splitlines() if line.startswith("data:") and '"id"' in line][-1]
    answer: Message = json.loads(body)
    return answer


@contextlib.asynccontextmanager
async def over_http(url: str, headers: dict[str, str]) -> AsyncIterator[Asker]:
    """A server at a URL."""
    every = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": VERSION, **headers}
    async with aiohttp.ClientSession(headers=every) as http:

        async def send(message: Message) -> Message | None:
            async with http.post(url, json=message) as response:
                session = response.headers.get("Mcp-Session-Id")
                if session:
                    http.headers["Mcp-Session-Id"] = session
                text = await response.text()
                return answer_in(text, response.content_type) if "id" in message else None

        asker = Asker(send)
        await asker.connect()
        yield asker


def language_server() -> list[str]:
    """The command of the common language server."""
    return [str(Path(sys.executable).with_name("basedpyright-langserver")), "--stdio"]
