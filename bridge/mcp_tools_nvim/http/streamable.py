"""Streamable HTTP with sessions (2024-11-05 … 2025-11-25): POST, GET and DELETE."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, cast

from aiohttp import web
from multidict import istr

from .. import jsonrpc
from ..sessions.registry import FullError, Sessions
from ..sessions.session import Session
from ..sessions.store import TooMuchError
from ..sessions.streams import EventIds
from ..values import Scope
from .guards import refusal
from .listener import is_connected
from .response import SSE_HEADERS, DeferredResponse, Responses, attach, json_response, write_stream
from .scope import ScopeError, read_scope

if TYPE_CHECKING:
    from ..mcp.kernel import Kernel

SESSION_HEADER = istr("Mcp-Session-Id")
LAST_EVENT_HEADER = istr("Last-Event-ID")

RETRY_AFTER_SECONDS = 10
"""Seconds until a refused client should retry: usually a session can be dropped by then."""


@dataclass(slots=True)
class StreamableHttp:
    """The transport for streamable HTTP with sessions.

    Args:
        sessions: all sessions.
        events: makes event ids.
        responses: the responses in flight.
        agent: name of the terminal agent whose endpoint this is; only that agent's sessions are valid.
        holder: digest of a client's own token; only its sessions are valid. None = the project's token.
    """

    _sessions: Sessions
    _events: EventIds
    _responses: Responses
    _agent: str | None = None
    _holder: str | None = None

    async def post(
        self, http: web.Request, kernel: Kernel, body: jsonrpc.Message | jsonrpc.Batch
    ) -> web.StreamResponse:
        """Serves a message or a batch."""
        try:
            if isinstance(body, jsonrpc.Request) and body.method == "initialize":
                return await self._initialize(http, kernel, body)
            session = self._session(http, kernel, body.id if isinstance(body, jsonrpc.Request) else None)
        except FullError:
            return full_response()
        if not isinstance(session, Session):
            return session
        if fault := fault_of(session, body):
            return fault_response(fault)
        if isinstance(body, jsonrpc.Request):
            return await self._respond(http, session, [body])
        requests = []
        for message in messages_of(body):
            if isinstance(message, jsonrpc.Request):
                requests.append(message)
            else:
                await session.receive(message)
        if not requests:
            return web.Response(status=202)
        return await self._respond(http, session, requests, is_batch=True)

    async def get(self, http: web.Request, kernel: Kernel) -> web.StreamResponse:
        """Opens the standalone stream, or resumes an interrupted one."""
        try:
            session = self._session(http, kernel)
        except FullError:
            return full_response()
        if isinstance(session, web.Response):
            return session
        last_id = http.headers.get(LAST_EVENT_HEADER, "")
        last = self._events.read(last_id)
        stream = None if last is None else session.streams.resumable(last)
        # `fetch` reports an incomplete chunked body as an error; Gemini CLI and Qwen Code then give up.
        framed = self._agent is None
        if stream is not None:
            return await write_stream(stream, http, attach(stream, http), after=last, framed=framed)
        if lost := self._events.request_ids(last_id):
            return _lost_response(lost)
        stream = session.standalone
        if stream.alive:
            return refusal(409, "The session already has a stream")
        reader = attach(stream, http)
        session.notify_watcher()
        return await write_stream(stream, http, reader, prime=session.peer.expects_priming, framed=framed)

    async def delete(self, http: web.Request) -> web.Response:
        """Permanently ends a session."""
        id_ = http.headers.get(SESSION_HEADER)
        if id_ is None:
            return _no_session_id()
        known = self._sessions.delete(id_, self._agent, self._holder)
        return web.Response(status=200) if known else _no_session()

    def _session(
        self, http: web.Request, kernel: Kernel, request: jsonrpc.RequestId | None = None
    ) -> Session | web.Response:
        """Returns the session of a message, or a refusal with the id of the `request`."""
        id_ = http.headers.get(SESSION_HEADER)
        if id_ is None:
            return _no_session_id(request)
        return self._sessions.find(kernel, id_, self._agent, self._holder) or _no_session(request)

    async def _initialize(self, http: web.Request, kernel: Kernel, request: jsonrpc.Request) -> web.Response:
        try:
            scope = read_scope(http) if self._agent is None else Scope(agent=self._agent)
        except ScopeError as failure:
            return refusal(400, str(failure), request.id)
        session = self._sessions.create(kernel, "http", scope, self._holder)
        saved = False
        try:
            answer = await session.answer(partial(is_connected, http), request)
            if session.peer.identity[0]:
                id_ = self._sessions.save(session)
                saved = True
                response = json_response(answer)
                response.headers[SESSION_HEADER] = id_
                return response
            return json_response(answer)
        except TooMuchError as failure:
            return fault_response(
                jsonrpc.Fault(jsonrpc.INVALID_PARAMS, f"Invalid params: {failure}", request.id)
            )
        finally:
            if not saved:
                self._sessions.drop(session)

    async def _respond(
        self, http: web.Request, session: Session, requests: list[jsonrpc.Request], *, is_batch: bool = False
    ) -> web.StreamResponse:
        """Answers a request, or the requests of a batch."""
        response = DeferredResponse(http, self._responses, self._events, requests=requests, peer=session.peer)
        session.streams.responding(response)
        response.when_gone = partial(session.on_disconnect, response, requests)
        try:
            if is_batch:
                return await response.finish(await session.answer_batch(requests, response))
            return await response.finish(await session.answer(response.connected, requests[0], response))
        finally:
            session.streams.responded(response)
            response.close()


def messages_of(body: jsonrpc.Message | jsonrpc.Batch) -> tuple[jsonrpc.Message, ...]:
    """Returns the messages of a body that `fault_of` accepts."""
    return cast(tuple[jsonrpc.Message, ...], body.messages) if isinstance(body, jsonrpc.Batch) else (body,)


def fault_of(session: Session, body: jsonrpc.Message | jsonrpc.Batch) -> jsonrpc.Fault | None:
    """Returns why a session refuses a body; None when it accepts it."""
    if not isinstance(body, jsonrpc.Batch):
        return _in_flight(body) if isinstance(body, jsonrpc.Request) and session.is_duplicate(body) else None
    if not session.peer.may_batch:
        return jsonrpc.Fault(
            jsonrpc.INVALID_REQUEST, "Batches are not part of this session's protocol version"
        )
    seen: set[jsonrpc.RequestId] = set()
    for message in body.messages:
        if isinstance(message, jsonrpc.Fault):
            return message
        if isinstance(message, jsonrpc.Request):
            if message.method == "initialize":
                return jsonrpc.Fault(jsonrpc.INVALID_REQUEST, "initialize must not be in a batch", message.id)
            if message.id in seen or session.is_duplicate(message):
                return _in_flight(message)
            seen.add(message.id)
    return None


async def serve_later(
    sessions: Sessions,
    session: Session,
    body: jsonrpc.Message | jsonrpc.Batch | jsonrpc.Fault,
    connected: Callable[[], bool],
) -> jsonrpc.Fault | None:
    """Serves a body and sends the answers over the standalone stream; or returns why it is refused."""
    if isinstance(body, jsonrpc.Fault):
        return body
    if fault := fault_of(session, body):
        return fault
    for message in messages_of(body):
        if isinstance(message, jsonrpc.Request):
            session.answer_later(connected, message, sessions.identify)
        else:
            await session.receive(message)
    return None


def _in_flight(request: jsonrpc.Request) -> jsonrpc.Fault:
    return jsonrpc.Fault(jsonrpc.INVALID_REQUEST, "Request id is in flight", request.id)


def fault_response(fault: jsonrpc.Fault) -> web.Response:
    """Returns the response to an invalid body."""
    return json_response(jsonrpc.dumps(jsonrpc.error(fault.id, fault.code, fault.message)), 400)


def _lost_response(request_ids: list[jsonrpc.RequestId]) -> web.Response:
    """Returns a stream with an error as the answer to each request of a stream that cannot be resumed."""
    text = "The answer was lost in a restart or has expired; the request may have been carried out"
    errors = [jsonrpc.dumps(jsonrpc.error(id_, jsonrpc.INTERNAL_ERROR, text)) for id_ in request_ids]
    body = b"".join(b"event: message\ndata: " + error + b"\n\n" for error in errors)
    return web.Response(body=body, headers=SSE_HEADERS)


def full_response() -> web.Response:
    """Returns the response when no session can be opened."""
    message = "All sessions are in use; close one, or raise limits.sessions"
    return refusal(503, message, code=jsonrpc.INTERNAL_ERROR, Retry_After=str(RETRY_AFTER_SECONDS))


def _no_session_id(request: jsonrpc.RequestId | None = None) -> web.Response:
    return refusal(400, f"{SESSION_HEADER} is missing; send initialize first", request)


def _no_session(request: jsonrpc.RequestId | None = None) -> web.Response:
    return refusal(404, "Session not found; send initialize again", request)
