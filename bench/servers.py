"""The measured programs, each in its own process."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import secrets
import sys
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import _npm
import aiohttp
from load import BenchError, Endpoint

from tests.support import processes
from tests.support.nvim import Home

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
LISTENING = re.compile(r"listening on port (\d+)")
START_SECONDS = 20
CLIENT = {"name": "bench", "version": "0"}
SESSION_VERSION, STATELESS_VERSION = "2025-11-25", "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": STATELESS_VERSION,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": CLIENT,
}
"""Sent with each stateless request."""


@dataclass
class Program:
    """A running server."""

    name: str
    process: asyncio.subprocess.Process
    port: int
    token: str
    ready_after: float  # seconds from its start to its ready line

    @property
    def url(self) -> str:
        """The base URL."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def headers(self) -> dict[str, str]:
        """The headers of every MCP request."""
        accept = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        return accept | ({"Authorization": f"Bearer {self.token}"} if self.token else {})

    def resident(self) -> float:
        """Resident memory in MB (10^6 bytes)."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"^VmRSS:\s+(\d+) kB", status, re.MULTILINE)
        assert found
        return int(found[1]) * 1024 / 1e6

    def cpu(self) -> float:
        """Used processor time in seconds."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    async def end(self) -> None:
        """Terminates the program, or kills it."""
        if self.process.returncode is None:
            self.process.terminate()
            try:
                await asyncio.wait_for(self.process.wait(), 5)
            except TimeoutError:
                self.process.kill()
                await self.process.wait()


async def launch(
    name: str,
    command: list[str],
    env: dict[str, str],
    log: Path,
    token: str = "",
    start_seconds: float = START_SECONDS,
) -> Program:
    """Starts a program and waits for its ready line.

    Raises:
        BenchError: it exited or timed out; the message has its output.
    """
    begun = time.perf_counter()
    with log.open("wb") as stream:
        process = await processes.start(*command, env=env, stdout=asyncio.subprocess.PIPE, stderr=stream)
    assert process.stdout
    try:
        async with asyncio.timeout(start_seconds):
            line = (await process.stdout.readline()).decode()
    except TimeoutError:
        line = ""
    found = LISTENING.search(line)
    if not found:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        await process.wait()
        raise BenchError(f"{name} did not start: {line}{log.read_text()[-600:]}")
    return Program(name, process, int(found[1]), token, time.perf_counter() - begun)


@contextlib.asynccontextmanager
async def bridge(
    socket: Path,
    home: Home,
    name: str = "bridge",
    under: Sequence[str] = (),
    start_seconds: float = START_SECONDS,
) -> AsyncIterator[Program]:
    """The bridge, as the plugin starts it, on any port; `under` is a wrapper command."""
    token = secrets.token_hex(32)
    env = home.environment() | {
        "NVIM_LISTEN_ADDRESS": str(socket),
        "MCP_AUTH_TOKEN": token,
        "MCP_PORT": "0",
    }
    command, log = (
        [*under, sys.executable, str(ROOT / "bridge" / "mcp_tools_nvim"), "process.main"],
        home.path / f"{name}.log",
    )
    program = await launch(name, command, env, log, token, start_seconds)
    try:
        yield program
    finally:
        await program.end()


@contextlib.asynccontextmanager
async def floor(
    socket: Path, home: Home, under: Sequence[str] = (), start_seconds: float = START_SECONDS
) -> AsyncIterator[Program]:
    """Bare aiohttp, and one bare round trip to Neovim; `under` is a wrapper command."""
    command, log = [*under, sys.executable, str(HERE / "floor.py"), str(socket)], home.path / "floor.log"
    program = await launch("floor", command, home.environment(), log, start_seconds=start_seconds)
    try:
        yield program
    finally:
        await program.end()


@contextlib.asynccontextmanager
async def peer(home: Home) -> AsyncIterator[Program]:
    """The TypeScript SDK on express, without an editor."""
    command = [str(_npm.WHEEL / "bin" / "node"), str(HERE / "peer.mjs"), str(_npm.TARGET)]
    program = await launch("peer", command, home.environment(), home.path / "peer.log")
    try:
        yield program
    finally:
        await program.end()


# Endpoints --------------------------------------------------------------------------------------------------


def around(message: dict[str, Any]) -> tuple[str, str]:
    """The text of a JSON-RPC request before and after its id."""
    text = json.dumps({"jsonrpc": "2.0", "id": 0, **message}, separators=(",", ":"))
    before, _, after = text.partition('"id":0')
    return f'{before}"id":', after


def call(tool: str, text: str) -> dict[str, Any]:
    """A `tools/call` of a tool that takes a text."""
    return {"method": "tools/call", "params": {"name": tool, "arguments": {"text": text}}}


def plain(program: Program, path: str, message: dict[str, Any], expect: str, size: int = 1) -> Endpoint:
    """Requests to the floor."""
    return Endpoint(program.url + path, {}, *around(message), expect, size=size)


async def with_sessions(
    http: aiohttp.ClientSession,
    program: Program,
    message: dict[str, Any],
    expect: str,
    count: int = 1,
    size: int = 1,
) -> Endpoint:
    """Requests in `count` new sessions."""
    sessions = [await open_session(http, program) for _ in range(count)]
    headers = program.headers | {"MCP-Protocol-Version": SESSION_VERSION}
    return Endpoint(f"{program.url}/mcp", headers, *around(message), expect, sessions, size)


def stateless(program: Program, message: dict[str, Any], expect: str) -> Endpoint:
    """Stateless requests."""
    if program.name == "peer":
        headers = program.headers | {"MCP-Protocol-Version": SESSION_VERSION}
        return Endpoint(f"{program.url}/stateless", headers, *around(message), expect)
    params = message["params"] | {"_meta": META}
    headers = stateless_headers(message["method"], params["name"])
    body = around(message | {"params": params})
    return Endpoint(f"{program.url}/mcp", program.headers | headers, *body, expect)


def stateless_headers(method: str, name: str) -> dict[str, str]:
    """The headers of a stateless request."""
    return {"MCP-Protocol-Version": STATELESS_VERSION, "Mcp-Method": method, "Mcp-Name": name}


async def open_session(http: aiohttp.ClientSession, program: Program) -> str:
    """Initializes a session.

    Returns:
        The session's id.
    """
    params = {"protocolVersion": SESSION_VERSION, "capabilities": {}, "clientInfo": CLIENT}
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    async with http.post(f"{program.url}/mcp", json=message, headers=program.headers) as answer:
        text = await answer.text()
        session = answer.headers.get("Mcp-Session-Id")
    if answer.status != 200 or not session:
        raise BenchError(f"{program.name} does not initialize: {answer.status} {text[:300]}")
    headers = program.headers | {"Mcp-Session-Id": session, "MCP-Protocol-Version": SESSION_VERSION}
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    async with http.post(f"{program.url}/mcp", json=ready, headers=headers) as answer:
        await answer.read()
    return session


async def ask(http: aiohttp.ClientSession, endpoint: Endpoint) -> bytes:
    """The body of the answer to a request."""
    headers = dict(endpoint.headers)
    if endpoint.sessions:
        headers["Mcp-Session-Id"] = endpoint.sessions[0]
    body = f"{endpoint.before}10000000{endpoint.after}"
    async with http.post(endpoint.url, data=body.encode(), headers=headers) as answer:
        content = await answer.read()
    if answer.status != 200 or endpoint.expect.encode() not in content:
        raise BenchError(f"{endpoint.url}: {answer.status} {content[:300]!r}")
    return content
