"""The handlers of all routes, and the parts that the transports share."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from aiohttp import web
from multidict import istr

from .. import jsonrpc
from ..instances.proof import prove
from ..mcp.loader import Loader
from ..sessions.ids import DeletedSessions, SessionIds
from ..sessions.registry import Sessions
from ..sessions.streams import EventIds
from .body import Bodies
from .connection import served_port
from .guards import TokenGuard, refusal
from .legacy_sse import SESSION_QUERY, Sse
from .parts import Parts
from .response import Responses, json_response
from .stateless import Stateless
from .streamable import SESSION_HEADER, StreamableHttp, fault_response

if TYPE_CHECKING:
    from ..mcp.kernel import Kernel
    from ..sessions.session import Session

VERSION_HEADER = istr("Mcp-Protocol-Version")
MAX_NONCE = 256
DRAIN_SECONDS = 0.5
"""Time at shutdown to answer cancelled calls."""


class Handlers:
    """The handlers of all routes.

    Attributes:
        bodies: reads bodies of requests.
        sessions: the sessions of all transports.
        events: makes event ids.
        responses: the responses in flight.
        loader: loads the kernel.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._limits = parts.settings.limits
        self._token = TokenGuard(parts.token)
        self.events = EventIds(parts.boot)
        state = parts.settings.state_dir
        ids = SessionIds(lambda: parts.token.value, DeletedSessions(Path(state) if state else None))
        self.sessions = Sessions(
            parts.calls, ids, self.events, self._limits, parts.report_sessions, watcher=parts.watcher
        )
        self.loader = Loader(self._build)
        self.responses = Responses()
        self._http = StreamableHttp(self.sessions, self.events, self.responses)
        self._stateless = Stateless(parts.calls, self.responses)
        self.bodies = Bodies(self._limits, self._asked)
        self._sse = Sse(self.sessions, self.bodies)

    def _build(self) -> Kernel:
        from ..mcp.kernel import Kernel  # imports the SDK, which is loaded by then
        from ..mcp.server import Assembly

        parts = self._parts
        assembly = Assembly(
            parts.editor,
            parts.calls,
            parts.settings,
            self.sessions.broadcast,
            parts.token.value,
            parts.hello.boot,
            parts.server_info,
        )
        return Kernel(
            assembly.server, assembly.tools.schema, assembly.stop, assembly.fast, assembly.agent_server
        )

    async def start(self) -> None:
        """Starts to import the SDK, if that is configured; only the first request waits for it."""
        if self._parts.settings.preload:
            self.loader.begin()

    async def close(self) -> None:
        """Cancels and answers all requests in flight, and ends every stream."""
        self._parts.calls.stop("shutdown")
        self.loader.stop()
        if tasks := self._stateless.tasks() | self.sessions.tasks():
            await asyncio.wait(tasks, timeout=DRAIN_SECONDS)
        self._stateless.cancel_all("shutdown")
        await self.sessions.close("shutdown")

    async def post(self, http: web.Request) -> web.StreamResponse:
        """`POST /mcp`, of both eras: the protocol version of the request decides."""
        data: bytes | web.Response | None = self.bodies.ready(http)
        if data is None:
            data = await self.bodies.read(http)
        if not isinstance(data, bytes):
            return data
        body = jsonrpc.parse(data)
        if isinstance(body, jsonrpc.Fault):
            return fault_response(body)
        kernel = self.loader.kernel or await self.loader.load()
        version = http.headers.get(VERSION_HEADER)
        if (
            version is not None
            and version not in kernel.handshake_versions
            and _is_stateless(kernel, version, body)
        ):
            return await self._stateless.post(http, kernel, version, body)
        return await self._http.post(http, kernel, body)

    async def get(self, http: web.Request) -> web.StreamResponse:
        """`GET /mcp`: opens or resumes a stream of a session."""
        if SESSION_HEADER not in http.headers and VERSION_HEADER not in http.headers:
            return refusal(400, f"{SESSION_HEADER} is missing; send initialize first")
        kernel = self.loader.kernel or await self.loader.load()
        return _only_post(http, kernel) or await self._http.get(http, kernel)

    async def delete(self, http: web.Request) -> web.StreamResponse:
        """`DELETE /mcp`: ends a session."""
        kernel = self.loader.kernel or await self.loader.load()
        return _only_post(http, kernel) or await self._http.delete(http)

    async def sse(self, http: web.Request) -> web.StreamResponse:
        """`GET /sse`: opens a session over legacy SSE."""
        return await self._sse.get(http, self.loader.kernel or await self.loader.load())

    async def messages(self, http: web.Request) -> web.StreamResponse:
        """`POST /messages`: takes messages for a session over legacy SSE."""
        return await self._sse.post(http)

    async def health(self, http: web.Request) -> web.StreamResponse:
        """`GET /health`: returns the status, with a nonce also a proof, with the token also details."""
        status: dict[str, object] = {"status": "ok"}
        nonce = http.query.get("nonce")
        if nonce is not None:
            if len(nonce) > MAX_NONCE:
                return refusal(400, f"nonce is longer than {MAX_NONCE} characters")
            if (port := served_port(http)) is not None:
                status["proof"] = prove(self._parts.token.value, port, nonce)
        if "Authorization" in http.headers:
            if refused := self._token.refuse(http):
                return refused
            status |= self._status()
        return json_response(jsonrpc.dumps(status))

    def _asked(self, http: web.Request) -> Session | None:
        id_ = http.headers.get(SESSION_HEADER) or http.query.get(SESSION_QUERY)
        return None if id_ is None else self.sessions.find_asked(id_)

    def _status(self) -> dict[str, object]:
        parts, versions = self._parts, self._parts.versions
        bridge = {name: getattr(versions, name) for name in ("bridge", "python", "sdk", "aiohttp", "msgpack")}
        clients = [
            {"name": info.name, "version": info.version, "transport": info.transport}
            for info in self.sessions.infos()
        ]
        return {
            "editor": {"connected": not parts.editor.closed.done(), "boot": parts.hello.boot},
            "sessions": {"count": len(self.sessions), "limit": self._limits.sessions, "clients": clients},
            "calls": {"in_flight": parts.calls.in_flight, "limit": self._limits.calls},
            "versions": bridge | parts.hello.versions,
        }


def _is_stateless(kernel: Kernel, version: str, body: jsonrpc.Message | jsonrpc.Batch) -> bool:
    # A client that initializes with an unknown version is about to negotiate one.
    unknown = kernel.unserved_version(version) is not None
    return not (unknown and isinstance(body, jsonrpc.Request) and body.method == "initialize")


def _only_post(http: web.Request, kernel: Kernel) -> web.Response | None:
    version = http.headers.get(VERSION_HEADER)
    if version is None or version in kernel.handshake_versions:
        return None
    return refusal(405, "This protocol version has POST only", Allow="POST")
