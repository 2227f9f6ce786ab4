"""A bridge on a loopback port, in this process, with an editor in memory."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import aiohttp
from aiohttp import web

from mcp_tools_nvim.agents.agents import Agents
from mcp_tools_nvim.calls.runner import Calls
from mcp_tools_nvim.http.app import App, Application
from mcp_tools_nvim.http.handlers import Parts
from mcp_tools_nvim.http.listener import Connection, Runner
from mcp_tools_nvim.process.ports import listen
from mcp_tools_nvim.sessions.session import SessionInfo
from mcp_tools_nvim.values import AgentEndpoint, Hello, Settings

from .memory import MemoryEditor, ToolContext
from .results import eventually as eventually

TOKEN = "t0ken-" + "x" * 58
JSON_AND_SSE = "application/json, text/event-stream"
LEGACY = "2025-11-25"
STATELESS = "2026-07-28"
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
Connected = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def _answer(request: Awaitable[aiohttp.ClientResponse]) -> tuple[int, Any]:
    async with await request as response:
        is_json = response.content_type == "application/json"
        return response.status, await response.json() if is_json else await response.text() or None


class _Bare(Application):
    """An application with one handler."""

    def __init__(self, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> None:
        super().__init__(1 << 20)
        self._handler = handler

    async def serve(self, request: web.Request, connection: Connection) -> web.StreamResponse:
        return await self._handler(request)


@asynccontextmanager
async def bare(handler: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> AsyncIterator[str]:
    """Serves one handler; yields its URL."""
    runner = Runner(_Bare(handler))
    await runner.setup()
    sock = listen("127.0.0.1", 0)
    await runner.listen(sock)
    yield f"http://127.0.0.1:{sock.getsockname()[1]}/"
    await runner.cleanup()


@dataclass
class Served:
    """A running bridge and a client session that holds the token."""

    parts: Parts
    editor: MemoryEditor
    url: str
    http: aiohttp.ClientSession
    reported: list[list[SessionInfo]]
    app: App
    runner: Runner
    agents: Agents
    token = TOKEN

    def __post_init__(self) -> None:
        self.port = int(self.url.rsplit(":", 1)[1])
        self._ids = iter(range(1, 1_000_000))

    def message(self, method: str, params: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        """A JSON-RPC request with a fresh id."""
        body = {"jsonrpc": "2.0", "id": next(self._ids), "method": method}
        if params is not None:
            body["params"] = params
        return body | more

    async def post(
        self, body: Any, session: str | None = None, *, path: str = "/mcp", **headers: str
    ) -> aiohttp.ClientResponse:
        """POST of a value, or of raw bytes. Header names have `_` instead of `-`."""
        head = {"Accept": JSON_AND_SSE, "Content-Type": "application/json"}
        if session is not None:
            head["Mcp-Session-Id"] = session
        head |= {name.replace("_", "-"): value for name, value in headers.items()}
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return await self.http.post(self.url + path, data=data, headers=head)

    async def answer(self, body: Any, session: str | None = None, **options: str) -> tuple[int, Any]:
        """The status and the answer of `post`: JSON, text, or None if it is empty."""
        return await _answer(self.post(body, session, **options))

    async def answer_stateless(
        self, method: str, params: dict[str, Any] | None = None, **options: str
    ) -> tuple[int, Any]:
        """The status and JSON answer of `post_stateless`."""
        return await _answer(self.post_stateless(method, params, **options))

    async def initialize(
        self, version: str = LEGACY, capabilities: dict[str, Any] | None = None, client: str = "test"
    ) -> str:
        """Opens a session and returns its id."""
        async with await self.post(self.initialize_message(version, capabilities, client)) as response:
            assert response.status == 200, await response.text()
            answer = await response.json()
            assert answer["result"]["protocolVersion"] == version
            session = response.headers["Mcp-Session-Id"]
        assert await self.answer(INITIALIZED, session) == (202, None)
        return session

    def initialize_message(
        self, version: str = LEGACY, capabilities: dict[str, Any] | None = None, client: str = "test"
    ) -> dict[str, Any]:
        """An `initialize` request."""
        params = {"protocolVersion": version, "capabilities": capabilities or {}}
        return self.message("initialize", params | {"clientInfo": {"name": client, "version": "1"}})

    async def ask(self, session: str, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """The JSON answer to one request in a session."""
        status, answer = await self.answer(self.message(method, params), session)
        assert status == 200, answer
        return answer

    async def delete(self, session: str) -> int:
        """The status of the deletion of a session."""
        head = {"Mcp-Session-Id": session}
        async with self.http.delete(self.url + "/mcp", headers=head) as response:
            return response.status

    async def health(self) -> Any:
        async with self.http.get(self.url + "/health") as response:
            return await response.json()

    def call_message(self, tool: str, arguments: dict[str, Any] | None = None, **meta: Any) -> dict[str, Any]:
        """A `tools/call`."""
        more = {"arguments": arguments, "_meta": meta or None}
        given = {name: value for name, value in more.items() if value is not None}
        return self.message("tools/call", {"name": f"nvim_{tool}"} | given)

    async def call(self, session: str, tool: str, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
        """The result of a tool call that is not streamed."""
        _, answer = await self.answer(self.call_message(tool, arguments), session)
        assert "result" in answer, answer
        return answer["result"]

    async def post_stateless(
        self, method: str, params: dict[str, Any] | None = None, *, version: str = STATELESS, **headers: str
    ) -> aiohttp.ClientResponse:
        """A stateless request, with its envelope."""
        params = dict(params or {})
        params["_meta"] = {
            "io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        } | params.get("_meta", {})
        head = {"MCP_Protocol_Version": version, "Mcp_Method": method} | headers
        if "name" in params:
            head.setdefault("Mcp_Name", params["name"])
        return await self.post(self.message(method, params), **head)

    async def stream(self, body: Any, session: str | None = None) -> list[Any]:
        """All events of the stream that answers a POST."""
        async with await self.post(body, session) as response:
            assert response.content_type == "text/event-stream"
            return [event async for event in events(response)]

    async def get(self, session: str, **headers: str) -> aiohttp.ClientResponse:
        """The session's stream."""
        head = {"Accept": "text/event-stream", "Mcp-Session-Id": session}
        head |= {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.http.get(self.url + "/mcp", headers=head)

    @asynccontextmanager
    async def listening(self, session: str, **headers: str) -> AsyncIterator[AsyncIterator[Any]]:
        """The events of the session's stream after the empty first one."""
        async with await self.get(session, **headers) as response:
            stream = events(response)
            assert (await next_event(stream))[2] == ""
            yield stream

    @asynccontextmanager
    async def connection(self, **options: Any) -> AsyncIterator[Connected]:
        """A TCP connection."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, **options)
        try:
            yield reader, writer
        finally:
            writer.close()

    def add_gate(self, name: str = "wait") -> tuple[asyncio.Event, Callable[[], Awaitable[ToolContext]]]:
        """Adds a tool that returns `opened` when the event is set; the second value waits until it runs."""
        opened, running = asyncio.Event(), asyncio.Queue[ToolContext]()

        async def wait(context: ToolContext, arguments: dict[str, Any]) -> str:
            running.put_nowait(context)
            await opened.wait()
            return "opened"

        self.editor.add_tool(name, wait)
        return opened, running.get


async def events(response: aiohttp.ClientResponse) -> AsyncIterator[tuple[str | None, str, Any]]:
    """Server-sent events as `(id, event, data)`; JSON data is parsed, comments are skipped."""
    fields: dict[str, str] = {}
    async for raw in response.content:
        line = raw.decode().rstrip("\r\n")
        if line:
            name, _, value = line.partition(": ")
            if name:
                fields[name] = value
        elif "data" in fields:
            data: Any = fields["data"]
            data = json.loads(data) if data.startswith(("{", "[")) else data
            yield fields.get("id"), fields.get("event", "message"), data
            fields = {}


async def next_event(stream: AsyncIterator[Any], seconds: float = 5.0) -> Any:
    """The next event."""
    async with asyncio.timeout(seconds):
        return await anext(stream)


@asynccontextmanager
async def served(
    settings: Settings | None = None,
    *,
    boot: str = "boot",
    endpoints: tuple[AgentEndpoint, ...] = (),
    **seconds: float,
) -> AsyncIterator[Served]:
    """Runs a bridge; `seconds` are deadlines of its `Runner`."""
    settings, state = settings or Settings(), tempfile.TemporaryDirectory()
    if not settings.state_dir:
        settings = replace(settings, state_dir=state.name)
    editor = MemoryEditor(settings)
    calls = Calls(editor, settings, boot)
    hello = Hello("editor-boot", {"tools": 1}, {"nvim": "0.0.0", "plugin": "0.0.0"}, None, settings)
    parts = Parts(settings, hello, editor, calls, TOKEN, {"bridge": "0"}, boot)
    reported: list[list[SessionInfo]] = []
    parts.report_sessions = reported.append
    app = App(parts)
    agents = Agents(editor, replace(hello, endpoints=endpoints), TOKEN, lambda token: None, app)
    runner = Runner(app, backpressure=calls.backpressure, **seconds)
    await runner.setup()
    await agents.open()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        head, timeout = {"Authorization": f"Bearer {TOKEN}"}, aiohttp.ClientTimeout(total=20)
        async with aiohttp.ClientSession(headers=head, timeout=timeout) as http:
            yield Served(parts, editor, url, http, reported, app, runner, agents)
    finally:
        await runner.cleanup()
        await agents.close()
        editor.close()
        state.cleanup()
