"""The context of one inbound message for the SDK: its client, and how to send messages to it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, cast

import anyio
from mcp import MCPError
from mcp.server.connection import Connection, allowed_log_levels
from mcp.server.context import ServerRequestContext
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from .. import jsonrpc
from ..calls.arguments import fits
from ..values import MAX_CLIENT_NAME, ClientInfo, Scope, Sender, View

MAX_TOKEN = 1024
"""Maximum characters or bits of a progress token; longer ones are ignored: each progress repeats them."""

_ONE_WAY = TransportContext(kind="streamable-http", can_send_request=False)
_TWO_WAY = TransportContext(kind="streamable-http", can_send_request=True)


SendRequest = Callable[[str, Mapping[str, Any] | None, float | None], Awaitable[jsonrpc.Answer]]
"""Sends a request (method, params, timeout in seconds) to the client and waits for its answer."""


class Push(Protocol):
    """Sends a message to the client without waiting."""

    def __call__(self, data: bytes, *, droppable: bool = False) -> None:
        """`droppable`: may be left out when the client reads slowly."""


class KeyedPush(Push, Protocol):
    """Sends a message over a stream that may lack a reader for long."""

    def __call__(self, data: bytes, *, droppable: bool = False, key: str | None = None) -> None:
        """`key`: skip the message while an unsent one has the same key."""


@dataclass(eq=False)
class Dispatch:
    """One inbound message (the SDK's `DispatchContext`), and how to send messages to its client.

    Attributes:
        store: dict that lives as long as the connection of a client without a session.
        encoded: the result as JSON text in parts, set by a handler; replaces its returned dict.
        fast_outcome: outcome or exception of the fast path, for the handler.
        scope: scope of the client.
        agent: name of the client from its User-Agent, for requests without a client name; "" if unknown.
    """

    request_id: jsonrpc.RequestId | None
    _params: Mapping[str, Any] | None
    _push: Push | None = None
    _ask: SendRequest | None = None
    _hang_up: Callable[[], None] | None = None
    store: dict[str, Any] | None = None
    scope: Scope | None = None
    agent: str = ""
    encoded: tuple[bytes, ...] | None = None
    fast_outcome: Any = None
    _cancel_requested: anyio.Event | None = None

    @property
    def transport(self) -> TransportContext:
        """Tells the SDK whether requests can be sent to the client."""
        return _ONE_WAY if self._ask is None else _TWO_WAY

    @property
    def message_metadata(self) -> ServerMessageMetadata:
        """Metadata for the SDK. Not cached: a reference cycle would keep the request in memory."""
        close = None if self._hang_up is None else self._close_stream
        return ServerMessageMetadata(request_context=self, close_sse_stream=close)

    @property
    def cancel_requested(self) -> anyio.Event:
        """Never set: a cancellation cancels the handler's task directly."""
        if self._cancel_requested is None:
            self._cancel_requested = anyio.Event()
        return self._cancel_requested

    @property
    def can_send_request(self) -> bool:
        """Whether requests can be sent to the client now."""
        return self._ask is not None

    def send(self, method: str, params: Mapping[str, Any] | None, *, droppable: bool = True) -> None:
        """Sends a notification that belongs to this request; never waits."""
        if self._push is not None:
            self._push(jsonrpc.dumps(jsonrpc.notification(method, params)), droppable=droppable)

    def send_progress(
        self, done: float, total: float | None, message: str | None, meta: dict[str, Any] | None = None
    ) -> None:
        """Sends progress, if the client sent a progress token; never waits."""
        token = _progress_token(self._params)
        if token is None:
            return
        params: dict[str, Any] = {"progressToken": token, "progress": done}
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
        """Implements the SDK's method with `send`."""
        self.send(method, params)

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Implements the SDK's method with `send_progress`."""
        self.send_progress(progress, total, message)

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Sends a request over the stream of this request."""
        if self._ask is None:
            raise NoBackChannelError(method)
        return await _ask(self._ask, method, params, opts)

    async def _close_stream(self) -> None:
        if self._hang_up is not None:
            self._hang_up()


@dataclass(slots=True)
class Standalone:
    """The SDK's `Outbound` of a session: messages that belong to no request."""

    _push: KeyedPush
    _ask: SendRequest

    def notify_client(self, method: str, params: Mapping[str, Any], key: str) -> None:
        """Sends a notification, unless an unsent one has the same key; never waits."""
        self._push(jsonrpc.dumps(jsonrpc.notification(method, params)), key=key)

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        """Sends a notification; never waits."""
        self._push(jsonrpc.dumps(jsonrpc.notification(method, params)))

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Sends a request over the standalone stream."""
        return await _ask(self._ask, method, params, opts)


async def _ask(
    ask: SendRequest, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None
) -> dict[str, Any]:
    answer = await ask(method, params, (opts or {}).get("timeout"))
    if answer.error is not None:
        error = answer.error
        code = error.get("code")
        raise MCPError(code if isinstance(code, int) else 0, str(error.get("message", "")), error.get("data"))
    return answer.result if isinstance(answer.result, dict) else {}


def _progress_token(params: Mapping[str, Any] | None) -> str | int | None:
    meta = params.get("_meta") if params else None
    token = meta.get("progressToken") if isinstance(meta, dict) else None
    if isinstance(token, str):
        return token if len(token) <= MAX_TOKEN else None
    if isinstance(token, int) and not isinstance(token, bool):
        return token if token.bit_length() <= MAX_TOKEN else None
    return None


RequestContext = ServerRequestContext[Any, Any]
"""The context that handlers and middleware get."""

logger = logging.getLogger(__name__)

_HANDSHAKE_VERSIONS = frozenset(HANDSHAKE_PROTOCOL_VERSIONS)


class Requester(NamedTuple):
    """The client of one request: its SDK connection, how to send messages to it, and the parameters."""

    connection: Connection
    dispatch: Dispatch
    params: Mapping[str, Any]

    @property
    def is_stateless(self) -> bool:
        """Whether the request is of the stateless era."""
        return self.connection.protocol_version not in _HANDSHAKE_VERSIONS

    def log_levels(self) -> frozenset[str] | None:
        """Returns the log levels that a stateless request asks for; None in a session, which has a level."""
        if not self.is_stateless:
            return None
        return frozenset(allowed_log_levels(self.connection.protocol_version, self.params.get("_meta")))


def requester_of(context: RequestContext) -> Requester:
    """Returns the client of a request."""
    return Requester(sdk_connection(context), dispatch_of(context), context.params or {})


def sdk_connection(context: RequestContext) -> Connection:
    """Returns the SDK's connection of the client, with its session id, capabilities and state."""
    return context.session._connection


def declared_client(connection: Connection) -> tuple[ClientInfo, dict[str, Any]]:
    """Returns the client and its declared capabilities, except those that are too large."""
    known: tuple[ClientInfo, dict[str, Any]] | None = connection.state.get("client")
    if known is None:
        params, declared = connection.client_params, connection.client_capabilities
        info = params.client_info if params is not None else None
        # Cut, since Neovim keeps these names until it exits.
        name, version = (info.name, info.version) if info is not None else ("", "")
        client = ClientInfo(name[:MAX_CLIENT_NAME], version[:MAX_CLIENT_NAME])
        dumped = declared.model_dump(by_alias=True, mode="json", exclude_none=True) if declared else {}
        capabilities = {key: value for key, value in dumped.items() if fits(value)}
        if len(capabilities) < len(dumped):
            logger.info("ignored capabilities of %.80r that are too large", client.name)
        known = connection.state["client"] = (client, capabilities)
    return known


def sender_of(requester: Requester) -> Sender:
    """Returns the sender of a client's calls."""
    connection, scope = requester.connection, requester.dispatch.scope
    known: Sender | None = connection.state.get("sender")
    if known is None or known.scope != scope:
        client, capabilities = declared_client(connection)
        known = connection.state["sender"] = Sender(client, connection.session_id, capabilities, scope)
    return known


def view_of(context: RequestContext) -> View:
    """Returns what determines the client's list of tools."""
    dispatch = dispatch_of(context)
    return View(declared_client(sdk_connection(context))[0].name or dispatch.agent, dispatch.scope)


def dispatch_of(context: RequestContext) -> Dispatch:
    """Returns the dispatch of a request."""
    return cast(Dispatch, context.request)


def session_store(context: RequestContext) -> dict[str, Any]:
    """Returns the dict that lives as long as the client's session; without a session, as its connection."""
    store = dispatch_of(context).store
    return sdk_connection(context).state if store is None else store


def is_stateless(context: RequestContext) -> bool:
    """Whether the request is of the stateless era."""
    return context.protocol_version not in _HANDSHAKE_VERSIONS


def notify_client(connection: Connection, method: str, params: Mapping[str, Any], key: str) -> None:
    """Sends a notification that belongs to no request to a session's client; never waits."""
    cast(Standalone, connection.outbound).notify_client(method, params, key)
