"""One inbound message as the SDK gets it, and the ways to send messages to its client."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

import anyio
from mcp import MCPError
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.transport_context import TransportContext

from .. import jsonrpc
from ..values import Scope

MAX_TOKEN = 1024
"""Maximum characters (or bits) of a progress token, which every progress repeats; longer ones are ignored."""

_ONE_WAY = TransportContext(kind="streamable-http", can_send_request=False)
_TWO_WAY = TransportContext(kind="streamable-http", can_send_request=True)


class SendRequest(Protocol):
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
    """A push to a stream that may have no reader for long."""

    def __call__(self, data: bytes, *, droppable: bool = False, key: str | None = None) -> None:
        """`key`: skip the message while an unsent one has the same key."""


class Dispatch:
    """One inbound message (the SDK's `DispatchContext`), and the way back to its client.

    Attributes:
        store: dict that lives as long as the connection of a client without a session.
        encoded: the result as JSON text in parts, set by a handler; replaces its returned dict.
        early: outcome of the fast path, from which the handler makes the result.
        within: scope of the client.
    """

    def __init__(
        self,
        request_id: jsonrpc.RequestId | None,
        params: Mapping[str, Any] | None,
        push: Push | None = None,
        ask: SendRequest | None = None,
        hang_up: Callable[[], None] | None = None,
        store: dict[str, Any] | None = None,
        within: Scope | None = None,
    ) -> None:
        self.request_id = request_id
        self.store = store
        self.within = within
        self.transport = _ONE_WAY if ask is None else _TWO_WAY
        self.encoded: tuple[bytes, ...] | None = None
        self.early: Any = None
        self._params = params
        self._push = push
        self._ask = ask
        self._hang_up = hang_up
        self._cancel_requested: anyio.Event | None = None

    @property
    def message_metadata(self) -> ServerMessageMetadata:
        """Metadata for the SDK. Not cached: a reference cycle would keep the request in memory."""
        close = None if self._hang_up is None else self._close_stream
        return ServerMessageMetadata(request_context=self, close_sse_stream=close)

    @property
    def cancel_requested(self) -> anyio.Event:
        """Never set: a cancel reaches the handler's task directly."""
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


class Standalone:
    """The SDK's `Outbound` of a session: messages that belong to no request."""

    def __init__(self, push: KeyedPush, ask: SendRequest) -> None:
        self._push = push
        self._ask = ask

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
