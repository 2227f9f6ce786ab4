"""The handlers of all routes, and the parts that the transports share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from aiohttp import web
from multidict import istr

from .. import jsonrpc, sdk
from ..instances.proof import prove
from ..sessions.registry import Sessions
from ..sessions.store import SessionStore
from ..sessions.streams import EventIds
from ..values import Hello, ServerInfo, Settings
from .guards import has_token, header_values, refusal, unauthorized
from .legacy_sse import SESSION_QUERY, Sse
from .listener import served_port
from .response import Responses, json_response
from .stateless import Stateless
from .streamable import SESSION_HEADER, StreamableHttp, fault_response

if TYPE_CHECKING:
    from ..calls.runner import Calls
    from ..mcp.kernel import Kernel
    from ..neovim.nvim import NvimEditor
    from ..sessions.session import Session, SessionInfo
    from ..values import Limits


@dataclass(slots=True)
class Parts:
    """Everything that the application needs.

    Attributes:
        settings: options of the plugin, from `hello`.
        hello: Neovim's answer to `hello`; `hello.boot` identifies the run of Neovim.
        editor: the connection to Neovim.
        calls: runs calls.
        token: the bearer token.
        versions: versions of the bridge and its packages.
        boot: identifies this run of the bridge; prefix of call ids and event ids.
        report_sessions: called with the whole list after every change; debounced.
    """

    settings: Settings
    hello: Hello
    editor: NvimEditor
    calls: Calls
    token: str = field(repr=False)
    versions: dict[str, str]
    boot: str
    report_sessions: Callable[[list[SessionInfo]], None] = lambda sessions: None


BODY_SECONDS = 30.0
"""Maximum time for a body; no client on this machine needs half a minute for 4 MiB."""

ANSWER_GROWTH = 2
"""Maximum size of an answer per byte of a file in it: base64 adds a third, JSON escapes usually less."""


class Bodies:
    """Limits and reads bodies. Clients' answers to questions may be larger, since they may contain a file.

    Args:
        limits: limits of requests and resources.
        find_with_question: returns the session of a request, if its client has an unanswered question.
    """

    def __init__(self, limits: Limits, find_with_question: Callable[[web.Request], Session | None]) -> None:
        self._limit = limits.request_body
        self._answer_limit = max(limits.request_body, ANSWER_GROWTH * limits.resource)
        self._find_with_question = find_with_question

    def refuse(self, request: web.Request) -> web.Response | None:
        """Returns 413 if the declared length is above the limit, which is higher if a question is open."""
        length = request.content_length
        if length is None or length <= self._limit:
            return None  # a body without a declared length is limited while it is read
        session = self._find_with_question(request)
        limit = self._limit if session is None else self._answer_limit
        return None if length <= limit else self._too_large(session, limit)

    def ready(self, request: web.Request) -> bytes | None:
        """Returns the body if all of it has arrived, which is the usual case; else None."""
        content = request.content
        if not content.is_eof() or content.total_bytes > self._limit or content.exception() is not None:
            return None
        return content.read_nowait()

    async def read(self, request: web.Request) -> bytes | web.Response:
        """Returns the body, or the response to one that is too large, too slow or incomplete."""
        limit, session, length = self._limit, None, request.content_length
        if (length is None or length > limit) and (session := self._find_with_question(request)) is not None:
            limit = self._answer_limit
            request = request.clone(client_max_size=limit)
        try:
            async with asyncio.timeout(BODY_SECONDS):
                return await request.read()
        except web.HTTPRequestEntityTooLarge:
            return self._too_large(session, limit)
        except TimeoutError:
            response = refusal(408, f"Request body took longer than {BODY_SECONDS:g} s")
        except (web.RequestPayloadError, ConnectionError):
            response = refusal(400, "Request body is incomplete", code=jsonrpc.PARSE_ERROR)
        response.force_close()
        return response

    @staticmethod
    def _too_large(session: Session | None, limit: int) -> web.Response:
        if session is not None:
            session.questions.on_too_large(limit)
        response = refusal(413, f"Request body is larger than {limit} bytes", code=jsonrpc.TOO_LARGE)
        response.force_close()
        return response


VERSION_HEADER = istr("Mcp-Protocol-Version")
MAX_NONCE = 256
DRAIN_SECONDS = 0.5
"""Time at shutdown to answer cancelled calls."""


class Loader:
    """Imports the SDK and builds the kernel, once, for the first request that needs it.

    Args:
        build: builds it after the import.
    """

    def __init__(self, build: Callable[[], Kernel]) -> None:
        self._build = build
        self.kernel: Kernel | None = None

    async def load(self) -> Kernel:
        """Returns the kernel. Concurrent calls wait for the same import; a failed import is retried."""
        if self.kernel is None:
            await sdk.import_sdk("mcp_tools_nvim.mcp.server")
        if self.kernel is None:
            self.kernel = self._build()
        return self.kernel


class Handlers:
    """The handlers of all routes.

    Attributes:
        bodies: reads bodies of requests.
        server_info: returns the server information that an agent gets, by its name.
        sessions: the sessions of all transports.
        events: makes event ids.
        responses: the responses in flight.
        loader: loads the kernel.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._limits = parts.settings.limits
        self.server_info: Callable[[str], ServerInfo | None] = lambda agent: None
        self.events = EventIds(parts.boot)
        state = parts.settings.state_dir
        store = SessionStore(parts.token, Path(state) / "sessions" if state else None)
        self.sessions = Sessions(parts.calls, store, self.events, self._limits, parts.report_sessions)
        self.loader = Loader(self._build)
        self.responses = Responses()
        self._http = StreamableHttp(self.sessions, self.events, self.responses)
        self._stateless = Stateless(parts.calls, self.responses, self.sessions)
        self.bodies = Bodies(self._limits, self._find_with_question)
        self._sse = Sse(self.sessions, self.bodies)

    def _build(self) -> Kernel:
        from ..mcp.kernel import Kernel  # imports the SDK, which is loaded by then
        from ..mcp.server import Assembly

        parts = self._parts
        return Kernel(
            Assembly(
                parts.editor,
                parts.calls,
                parts.settings,
                self.sessions.broadcast,
                parts.token,
                parts.hello.boot,
                self.server_info,
            )
        )

    async def start(self) -> None:
        """Starts to import the SDK, if that is configured; does not wait for it."""
        if self._parts.settings.preload:
            self._preloading = asyncio.get_running_loop().create_task(self.loader.load())

    async def close(self) -> None:
        """Cancels and answers all requests in flight, and ends every stream."""
        self._parts.calls.stop("shutdown")
        if self.loader.kernel is not None:
            self.loader.kernel.stop()
        if tasks := self._stateless.tasks() | self.sessions.tasks():
            await asyncio.wait(tasks, timeout=DRAIN_SECONDS)
        self._stateless.cancel_all("shutdown")
        await self.sessions.close("shutdown")

    def is_authorized(self, http: web.Request) -> bool:
        """Whether a request has the token of clients."""
        return has_token(header_values(http), "authorization", "bearer", self._parts.token)

    async def post(self, http: web.Request) -> web.StreamResponse:
        """`POST /mcp`, with or without a session: the protocol version of the request decides."""
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
        kernel = await self.loader.load()
        return _refuse_stateless(http, kernel) or await self._http.get(http, kernel)

    async def delete(self, http: web.Request) -> web.StreamResponse:
        """`DELETE /mcp`: ends a session."""
        kernel = await self.loader.load()
        return _refuse_stateless(http, kernel) or await self._http.delete(http)

    async def sse(self, http: web.Request) -> web.StreamResponse:
        """`GET /sse`: opens a session over legacy SSE."""
        return await self._sse.get(http, await self.loader.load())

    async def messages(self, http: web.Request) -> web.StreamResponse:
        """`POST /messages`: receives messages for a session over legacy SSE."""
        return await self._sse.post(http)

    async def health(self, http: web.Request) -> web.StreamResponse:
        """`GET /health`: returns the status; for a nonce also a proof, for the token also details."""
        status: dict[str, object] = {"status": "ok"}
        nonce = http.query.get("nonce")
        if nonce is not None:
            if len(nonce) > MAX_NONCE:
                return refusal(400, f"nonce is longer than {MAX_NONCE} characters")
            if (port := served_port(http)) is not None:
                status["proof"] = prove(self._parts.token, port, nonce)
        if "Authorization" in http.headers:
            if not self.is_authorized(http):
                return unauthorized()
            status |= self._status()
        return json_response(jsonrpc.dumps(status))

    def _find_with_question(self, http: web.Request) -> Session | None:
        id_ = http.headers.get(SESSION_HEADER) or http.query.get(SESSION_QUERY)
        return None if id_ is None else self.sessions.find_with_question(id_)

    def _status(self) -> dict[str, object]:
        parts, clients = self._parts, [asdict(info) for info in self.sessions.infos()]
        return {
            "editor": {"connected": not parts.editor.closed.done(), "boot": parts.hello.boot},
            "sessions": {"count": len(self.sessions), "limit": self._limits.sessions, "clients": clients},
            "calls": {"in_flight": parts.calls.in_flight, "limit": self._limits.calls},
            "versions": parts.versions | parts.hello.versions,
        }


def _is_stateless(kernel: Kernel, version: str, body: jsonrpc.Message | jsonrpc.Batch) -> bool:
    # A client that initializes with an unknown version is about to negotiate one.
    initializes = isinstance(body, jsonrpc.Request) and body.method == "initialize"
    return not (initializes and kernel.unserved_version(version) is not None)


def _refuse_stateless(http: web.Request, kernel: Kernel) -> web.Response | None:
    version = http.headers.get(VERSION_HEADER)
    if version is None or version in kernel.handshake_versions:
        return None
    return refusal(405, "This protocol version has POST only", Allow="POST")
