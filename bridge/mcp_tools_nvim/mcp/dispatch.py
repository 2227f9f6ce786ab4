"""The dispatch of one message: what the SDK is given of it, and the ways back to its client."""

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
"""Characters of a progress token, or bits: each progress repeats it, so who sends a longer one gets none."""

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
        encoded: set by a handler that has the result as JSON text already, in parts; used instead of the
            returned dict.
        early: what the handler has to make a result of, because its work is done already.
        within: what the client asked to be shown of the tools.
    """

    def __init__(
        self,
        request_id: jsonrpc.RequestId | None,
        params: Mapping[str, Any] | None,
        push: Push | None = None,
        ask: Ask | None = None,
        hang_up: Callable[[], None] | None = None,
        scope: dict[str, Any] | None = None,
        within: Scope | None = None,
    ) -> None:
        self.request_id = request_id
        self.scope = scope
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
        """For the SDK. (Not kept: a circle would keep the whole request until a collection.)"""
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


async def _ask(
    ask: Ask, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None
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
