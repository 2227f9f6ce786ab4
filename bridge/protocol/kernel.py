"""The SDK behind one face: the only importer of its inner names.

Receives: checked JSON-RPC messages and what a transport can do with answers. Sends: results as plain dicts.
Does not know about: HTTP responses, the editor. Imported late (about a second); see `loader.py`.
Longer than other files, because no other one may import what these names are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import anyio
from mcp import MCPError
from mcp.server.connection import Connection, allowed_log_levels
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.runner import ServerRunner, aclose_shielded, modern_error_data
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.inbound import (
    ERROR_CODE_HTTP_STATUS,
    InboundLadderRejection,
    InboundModernRoute,
    classify_inbound_request,
    find_duplicated_routing_header,
    unsupported_protocol_version_rejection,
    validate_mcp_param_headers,
)
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types import HEADER_MISMATCH, ClientCapabilities, Implementation, InitializeRequestParams
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, is_version_at_least
from multidict import MultiMapping
from pydantic import ValidationError

from .. import jsonrpc
from . import invalid_params
from .capabilities import well_formed

Context = ServerRequestContext[Any, Any]
"""What handlers and middleware are given."""

MAX_KEPT_IDENTITY = 16 * 1024
"""Characters of what a client without a session says of itself, beyond which that is read anew each time."""

_BATCH_VERSION = "2025-03-26"
_PRIMING_VERSION = "2025-11-25"

_LIFESPAN: dict[str, Any] = {}
_ONE_WAY = TransportContext(kind="streamable-http", can_send_request=False)
_TWO_WAY = TransportContext(kind="streamable-http", can_send_request=True)


class Ask(Protocol):
    """Sends a request to the client and waits for its answer."""

    def __call__(
        self, method: str, params: Mapping[str, Any] | None, seconds: float | None
    ) -> Awaitable[jsonrpc.Answer]:
        """Waits at most `seconds`."""


class Push(Protocol):
    """Sends a message to the client without waiting."""

    def __call__(self, data: bytes, *, droppable: bool = False) -> None:
        """`droppable`: may be left out when the client reads slowly."""


class KeyedPush(Push, Protocol):
    """A push towards a stream that can wait long for its reader."""

    def __call__(self, data: bytes, *, droppable: bool = False, key: str | None = None) -> None:
        """`key`: a message with the same one that still waits makes this one superfluous."""


class Dispatch:
    """One inbound message to the SDK (its `DispatchContext`), and to our handlers the way back to the client.

    Attributes:
        scope: what lives as long as the client's connection, where the client has no session.
        encoded: set by a handler that has the result as JSON text already; used instead of the returned dict.
    """

    def __init__(
        self,
        request_id: jsonrpc.RequestId | None,
        params: Mapping[str, Any] | None,
        push: Push | None = None,
        ask: Ask | None = None,
        hang_up: Callable[[], None] | None = None,
        scope: dict[str, Any] | None = None,
    ) -> None:
        self.request_id = request_id
        self.scope = scope
        self.transport = _ONE_WAY if ask is None else _TWO_WAY
        self.encoded: bytes | None = None
        self._progress_token = _progress_token(params)
        self._push = push
        self._ask = ask
        self._hang_up = hang_up
        self._cancel_requested: anyio.Event | None = None
        close = None if hang_up is None else self._close_stream
        self.message_metadata = ServerMessageMetadata(request_context=self, close_sse_stream=close)

    @property
    def cancel_requested(self) -> anyio.Event:
        """Never set: a cancel reaches the handler's task directly."""
        if self._cancel_requested is None:
            self._cancel_requested = anyio.Event()
        return self._cancel_requested

    @property
    def can_send_request(self) -> bool:
        """Whether the client can be asked something now."""
        return self._ask is not None

    def send(self, method: str, params: Mapping[str, Any] | None, *, droppable: bool = True) -> None:
        """A notification that belongs to this request; never waits."""
        if self._push is not None:
            self._push(jsonrpc.dumps(jsonrpc.notification(method, params)), droppable=droppable)

    def send_progress(
        self, done: float, total: float | None, message: str | None, meta: dict[str, Any] | None = None
    ) -> None:
        """Progress, if the client wants any; never waits."""
        if self._progress_token is None:
            return
        params: dict[str, Any] = {"progressToken": self._progress_token, "progress": done}
        if total is not None:
            params["total"] = total
        if message is not None:
            params["message"] = message
        if meta is not None:
            params["_meta"] = meta
        self.send("notifications/progress", params)

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        """The SDK's way to `send`."""
        self.send(method, params)

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """The SDK's way to `send_progress`."""
        self.send_progress(progress, total, message)

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Asks the client over this request's own stream."""
        if self._ask is None:
            raise NoBackChannelError(method)
        return await _ask(self._ask, method, params, opts)

    async def _close_stream(self) -> None:
        if self._hang_up is not None:
            self._hang_up()


class Standalone:
    """The SDK's `Outbound` of a session: messages that belong to no request."""

    def __init__(self, push: KeyedPush, ask: Ask) -> None:
        self._push = push
        self._ask = ask

    def tell(self, method: str, params: Mapping[str, Any], key: str) -> None:
        """Sends a notification, unless one with this key waits to be read; never waits."""
        self._push(jsonrpc.dumps(jsonrpc.notification(method, params)), key=key)

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        """Sends a notification; never waits."""
        self._push(jsonrpc.dumps(jsonrpc.notification(method, params)))

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Asks the client."""
        return await _ask(self._ask, method, params, opts)


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a stateless request is not served."""

    status: int
    code: int
    message: str
    data: Any = None


class Peer:
    """The client at the other end of a session, as the SDK sees it."""

    def __init__(self, server: Server[Any], key: str, push: KeyedPush, ask: Ask) -> None:
        self._connection = Connection.for_loop(Standalone(push, ask), session_id=key)
        options = server.create_initialization_options()
        self._runner = ServerRunner(server, self._connection, _LIFESPAN, init_options=options)

    @property
    def version(self) -> str:
        """The negotiated protocol version."""
        return self._connection.protocol_version

    @property
    def may_batch(self) -> bool:
        """Whether the client may send several messages in one body: only one version has that."""
        return self.version == _BATCH_VERSION

    @property
    def expects_priming(self) -> bool:
        """Whether the client understands an empty event at the begin of a stream."""
        return is_version_at_least(self.version, _PRIMING_VERSION)

    @property
    def initialized(self) -> bool:
        """Whether the client may be sent notifications."""
        return self._connection.initialized.is_set()

    @property
    def identity(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Client information and capabilities, as the client declared them; empty before `initialize`."""
        params = self._connection.client_params
        return ({}, {}) if params is None else (_dump(params.client_info), _dump(params.capabilities))

    def revive(self, version: str, client: dict[str, Any], capabilities: dict[str, Any]) -> None:
        """Makes it the client that was initialized with these in an earlier life of the session.

        Raises:
            ValueError: they are not what a client can have declared.
        """
        if version not in HANDSHAKE_PROTOCOL_VERSIONS:
            raise ValueError(f"unknown protocol version {version}")
        self._connection.client_params = InitializeRequestParams(
            protocol_version=version,
            client_info=Implementation.model_validate(client),
            capabilities=ClientCapabilities.model_validate(capabilities),
        )
        self._connection.protocol_version = version
        self._connection.initialized.set()

    async def request(self, dispatch: Dispatch, request: jsonrpc.Request) -> dict[str, Any]:
        """Serves a request; raises whatever the handler raises."""
        params = request.params
        if request.method == "initialize" and params is not None:
            params = well_formed(params)
        return await self._runner.on_request(dispatch, request.method, params)

    async def notified(self, notification: jsonrpc.Notification) -> None:
        """Serves a notification; never raises."""
        dispatch = Dispatch(None, notification.params)
        await self._runner.on_notify(dispatch, notification.method, notification.params)

    async def close(self) -> None:
        """Runs the clean-up that handlers left with the connection."""
        await aclose_shielded(self._connection)


class Kernel:
    """Serves both eras on one SDK server.

    Args:
        server: built by `server.py`.
        ensure_schemas: makes the schemas current that parameter headers are checked against.
        stop: ends what the server keeps open (subscription streams).
    """

    handshake_versions = frozenset(HANDSHAKE_PROTOCOL_VERSIONS)
    dispatch = Dispatch
    rejection = Rejection

    def __init__(
        self, server: Server[Any], ensure_schemas: Callable[[], Awaitable[None]], stop: Callable[[], None]
    ) -> None:
        self.server = server
        self.stop = stop
        self._ensure_schemas = ensure_schemas

    def connect(self, key: str, push: KeyedPush, ask: Ask) -> Peer:
        """A new session's client."""
        return Peer(self.server, key, push, ask)

    async def route(
        self, request: jsonrpc.Request, headers: MultiMapping[str]
    ) -> InboundModernRoute | Rejection:
        """Checks envelope and headers of a stateless request."""
        if repeated := find_duplicated_routing_header(headers.items()):
            return Rejection(400, HEADER_MISMATCH, f"{repeated} header appears more than once")
        body = {"method": request.method, "params": request.params}
        verdict = classify_inbound_request(body, headers=headers)  # aiohttp's: names in any case
        if isinstance(verdict, InboundLadderRejection):
            return _rejection(verdict)
        mismatch = await self._parameter_mismatch(request, headers)
        return verdict if mismatch is None else mismatch

    def unserved_version(self, version: str) -> Rejection | None:
        """The refusal of a stateless protocol version that is not served."""
        rejection = unsupported_protocol_version_rejection(version)
        return None if rejection is None else _rejection(rejection)

    async def serve(
        self, route: InboundModernRoute, dispatch: Dispatch, request: jsonrpc.Request
    ) -> dict[str, Any]:
        """Serves a stateless request; raises whatever the handler raises."""
        runner = self._runner(route, {} if dispatch.scope is None else dispatch.scope)
        return await runner.on_request(dispatch, request.method, request.params)

    @staticmethod
    def error(id_: jsonrpc.RequestId, failure: Exception) -> dict[str, Any]:
        """The answer to a request whose handler raised; unexpected failures are logged, not told."""
        if isinstance(failure, ValidationError):
            return jsonrpc.error(id_, jsonrpc.INVALID_PARAMS, *invalid_params.describe(failure))
        data = modern_error_data(failure)
        return jsonrpc.error(id_, data.code, data.message, data.data)

    @staticmethod
    def status_of(answer: dict[str, Any]) -> int:
        """The HTTP status of a stateless answer."""
        return ERROR_CODE_HTTP_STATUS.get(answer["error"]["code"], 200) if "error" in answer else 200

    def _runner(self, route: InboundModernRoute, scope: dict[str, Any]) -> ServerRunner[Any]:
        """The SDK's view of a client without a session: the same while the HTTP connection says the same.

        Nothing is to be unwound after a request: handlers leave things with the connections of sessions only.
        """
        identity = (route.protocol_version, route.client_info, route.client_capabilities)
        known: tuple[Any, ServerRunner[Any]] | None = scope.get("runner")
        if known is not None and known[0] == identity:
            return known[1]
        runner = ServerRunner(self.server, Connection.from_envelope(*identity), _LIFESPAN)
        if len(repr(identity)) <= MAX_KEPT_IDENTITY:
            scope["runner"] = (identity, runner)
        return runner

    async def _parameter_mismatch(
        self, request: jsonrpc.Request, headers: MultiMapping[str]
    ) -> Rejection | None:
        lookup = self.server.get_tool_input_schema
        params = request.params or {}
        name, arguments = params.get("name"), params.get("arguments") or {}
        if request.method != "tools/call" or lookup is None or not isinstance(name, str):
            return None
        if not isinstance(arguments, dict):
            return None  # malformed: the handler's own check says so better
        await self._ensure_schemas()
        schema = lookup(name)
        if schema is None:
            return None
        rejection = validate_mcp_param_headers(schema, arguments, headers)
        return None if rejection is None else _rejection(rejection)


def connection_of(context: Context) -> Connection:
    """The client's connection: its session id, its capabilities, and a place to keep things."""
    return context.session._connection


def dispatch_of(context: Context) -> Dispatch | None:
    """Our own view of the message; None when another front (the SDK's, in tests) serves it."""
    return context.request if isinstance(context.request, Dispatch) else None


def scope_of(context: Context) -> dict[str, Any]:
    """A place to keep things as long as the client's session, or without one its connection."""
    dispatch = dispatch_of(context)
    if dispatch is not None and dispatch.scope is not None:
        return dispatch.scope
    return connection_of(context).state


def is_stateless(context: Context) -> bool:
    """Whether the request is of the era without sessions."""
    return context.protocol_version not in HANDSHAKE_PROTOCOL_VERSIONS


def tell(
    connection: Connection, method: str, params: Mapping[str, Any], key: str
) -> asyncio.Task[None] | None:
    """Sends a session's client what belongs to no request; a task only with another front than ours."""
    if isinstance(connection.outbound, Standalone):
        connection.outbound.tell(method, params, key)
        return None
    return asyncio.get_running_loop().create_task(connection.notify(method, params))


async def request_client(
    context: Context, method: str, params: Mapping[str, Any] | None, seconds: float | None = None
) -> dict[str, Any]:
    """Asks the client of a session, over the stream of its request.

    Raises:
        MCPError: the client refused.
        TimeoutError: it did not answer in time.
    """
    options: CallOptions = {} if seconds is None else {"timeout": seconds}
    return await context.session._request_outbound.send_raw_request(method, params, options)


def requested_log_levels(context: Context) -> frozenset[str] | None:
    """The log levels that a stateless request asked for; None in a session, which has a level of its own."""
    if not is_stateless(context):
        return None
    return frozenset(allowed_log_levels(context.protocol_version, context.meta))


async def _ask(
    ask: Ask, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None
) -> dict[str, Any]:
    answer = await ask(method, params, (opts or {}).get("timeout"))
    if answer.error is not None:
        error = answer.error
        code = error.get("code")
        raise MCPError(code if isinstance(code, int) else 0, str(error.get("message", "")), error.get("data"))
    return answer.result if isinstance(answer.result, dict) else {}


def _rejection(verdict: InboundLadderRejection) -> Rejection:
    status = ERROR_CODE_HTTP_STATUS.get(verdict.code, 200)
    return Rejection(status, verdict.code, verdict.message, verdict.data)


def _progress_token(params: Mapping[str, Any] | None) -> str | int | None:
    meta = params.get("_meta") if params else None
    token = meta.get("progressToken") if isinstance(meta, dict) else None
    return token if isinstance(token, str | int) and not isinstance(token, bool) else None


def _dump(model: Implementation | ClientCapabilities) -> dict[str, Any]:
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


__all__ = [
    "Ask",
    "Context",
    "Dispatch",
    "Kernel",
    "Peer",
    "Push",
    "Rejection",
    "connection_of",
    "dispatch_of",
    "is_stateless",
    "request_client",
    "requested_log_levels",
    "scope_of",
    "tell",
]
