"""The SDK's own front before our server: what our front hands to handlers, made from the SDK's contexts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Mapping
from dataclasses import replace
from typing import Any

from mcp import MCPError
from mcp.server.context import CallNext, HandlerResult

from mcp_tools_nvim import jsonrpc
from mcp_tools_nvim.mcp.dispatch import Dispatch, RequestContext, Standalone, is_stateless, sdk_connection
from mcp_tools_nvim.mcp.server import BridgeServer


def behind_the_sdk(server: BridgeServer) -> BridgeServer:
    """The same server, fit to be served by the SDK's own transports."""
    server.middleware.insert(0, _handed_over)
    return server


async def _handed_over(context: RequestContext, call_next: CallNext) -> HandlerResult:
    """Gives the request our view of it; returns when everything that was sent on its behalf is sent."""
    way, connection = _Way(context.session._request_outbound), sdk_connection(context)
    ask = None if is_stateless(context) else way.ask
    if ask is not None and not isinstance(connection.outbound, _Outbound):
        apart = _Way(connection.outbound)
        connection.outbound = _Outbound(apart.push, apart.ask)
    try:
        dispatch = _Dispatch(context.request_id, context.params, way.push, ask)
        dispatch.way = way
        return await call_next(replace(context, request=dispatch))
    finally:
        await way.sent()


class _Dispatch(Dispatch):
    """The SDK's transports know by themselves who wants progress."""

    way: _Way

    def send_progress(
        self, done: float, total: float | None, message: str | None, meta: dict[str, Any] | None = None
    ) -> None:
        self.way.spawn(self.way.outbound.progress(done, total, message))


class _Outbound(Standalone):
    """Marks a connection whose way out was replaced already."""


class _Way:
    """One of the SDK's ways to a client, with the manners of our transports."""

    def __init__(self, outbound: Any) -> None:
        self.outbound = outbound
        self._sending: set[asyncio.Task[None]] = set()

    def push(self, data: bytes, *, droppable: bool = False, key: str | None = None) -> None:
        message = json.loads(data)
        self.spawn(self.outbound.notify(message["method"], message.get("params")))

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        sending = asyncio.create_task(coroutine)
        self._sending.add(sending)
        sending.add_done_callback(self._sending.discard)

    async def ask(
        self, method: str, params: Mapping[str, Any] | None, seconds: float | None
    ) -> jsonrpc.Answer:
        try:
            result = await self._outbound.send_raw_request(
                method, params, {"timeout": seconds} if seconds else {}
            )
        except MCPError as mcp_error:
            return jsonrpc.Answer(0, error=mcp_error.error.model_dump(mode="json", exclude_none=True))
        return jsonrpc.Answer(0, result)

    async def sent(self) -> None:
        await asyncio.gather(*self._sending)
