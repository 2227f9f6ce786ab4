"""The transport of the stateless era (protocol version 2026-07-28): each POST is independent."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from aiohttp import hdrs, web
from multidict import istr

from .. import jsonrpc
from ..sessions.registry import FullError, Sessions
from ..sessions.session import Exchange
from .guards import refusal
from .listener import connection_of
from .response import DeferredResponse, Responses, json_response
from .scope import ScopeError, read_scope
from .streamable import fault_response, full_response

if TYPE_CHECKING:
    from ..calls.runner import Calls
    from ..mcp.kernel import Kernel, Rejection


CLAUDE = "claude-code"
"""Beginning of Claude Code's User-Agent, and the name that it declares in sessions."""

RELAY_SESSION = istr("Mcp-Tools-Session")
"""Header with the id of the session that the relay opened for its client."""


class Stateless:
    """The transport of the stateless era."""

    def __init__(self, calls: Calls, responses: Responses, sessions: Sessions) -> None:
        self._calls = calls
        self._responses = responses
        self._sessions = sessions
        self._exchanges: set[Exchange] = set()

    async def post(
        self, http: web.Request, kernel: Kernel, version: str, body: jsonrpc.Message | jsonrpc.Batch
    ) -> web.StreamResponse:
        """Serves a request. Notifications are accepted and ignored."""
        if isinstance(body, jsonrpc.Notification):
            refused = kernel.unserved_version(version)
            return web.Response(status=202) if refused is None else _refuse(None, refused)
        if not isinstance(body, jsonrpc.Request):
            return fault_response(jsonrpc.Fault(jsonrpc.INVALID_REQUEST, "Invalid request: not one request"))
        try:
            scope = read_scope(http)
        except ScopeError as failure:
            return refusal(400, str(failure), body.id)
        peer = None
        if (id_ := http.headers.get(RELAY_SESSION)) is not None:
            try:
                session = self._sessions.find(kernel, id_)
            except FullError:
                return full_response()
            if session is None:
                return refusal(410, "Session not found; send initialize again", body.id)
            peer = session.peer
        route = await kernel.route(body, http.headers, scope, peer)
        if isinstance(route, kernel.rejection):
            return _refuse(body.id, route)
        response = DeferredResponse(http, self._responses)
        exchange = Exchange(self._calls, response.connected, body)
        self._exchanges.add(exchange)
        response.when_gone = partial(exchange.cancel, "disconnected")
        try:
            store = connection_of(http).store
            agent = _agent(http) if body.method == "tools/list" else ""
            dispatch = kernel.dispatch(
                body.id, body.params, response.push, store=store, scope=scope, agent=agent
            )
            answer = await exchange.run(kernel, dispatch, partial(kernel.serve, route, peer))
            return await response.finish(answer, exchange.status)
        finally:
            self._exchanges.discard(exchange)
            response.close()

    def tasks(self) -> set[asyncio.Task[Any]]:
        """Returns the tasks of the requests in flight."""
        return {exchange.task for exchange in self._exchanges}

    def cancel_all(self, reason: str) -> None:
        """Cancels the requests in flight; each is answered with an error."""
        for exchange in list(self._exchanges):
            exchange.cancel(reason)


def _agent(http: web.Request) -> str:
    """Returns the agent's name from its User-Agent, for requests without a client name; "" if unknown."""
    name = http.headers.get(hdrs.USER_AGENT, "").partition("/")[0]
    return name if name == CLAUDE else ""


def _refuse(id_: jsonrpc.RequestId | None, rejection: Rejection) -> web.Response:
    body = jsonrpc.error(id_, rejection.code, rejection.message, rejection.data)
    return json_response(jsonrpc.dumps(body), rejection.status)
