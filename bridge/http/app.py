"""The application: what is served, and who guards it, as lists.

Receives: HTTP requests. Sends: them to `endpoints.py`, once no guard refuses. Does not know about: MCP.

aiohttp's own application (router, middleware, signals) would be a tenth of a call, and nothing here needs it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, NamedTuple, Protocol

from aiohttp import hdrs, web
from aiohttp.http import HttpVersion11

from .. import jsonrpc
from .connection import Connection, head_is_complete, note_token_shown, request_is_done
from .endpoints import Front
from .guards import Guard, refusal
from .guards.host import HostGuard, OriginGuard
from .guards.size import SizeGuard
from .guards.token import TokenGuard
from .guards.types import AcceptGuard, JsonGuard
from .legacy_sse import MESSAGES_PATH
from .parts import Parts

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
BodyHandler = Callable[[web.Request, bytes], Awaitable[web.StreamResponse]]

HEALTH_PATH = "/health"
"""Answered without the token; a little."""

logger = logging.getLogger(__name__)


class Route(NamedTuple):
    """Who serves a path by a method, and who is asked before, in this order; and who serves a body alone."""

    handler: Handler
    guards: list[Guard]
    body_handler: BodyHandler | None = None


class Guests(Protocol):
    """Who comes to other endpoints than that of the token, at the same port."""

    def welcomes(self, request: web.Request) -> Handler | None:
        """Who serves a request that shows the token of such an endpoint; None = it is none of theirs."""


class App:
    """See the head of this file. Served by `listener.Runner`.

    Attributes:
        front: the endpoints.
        guests: asked before any guard is; they have guards of their own.
    """

    def __init__(self, parts: Parts) -> None:
        settings = parts.settings
        self.front = front = Front(parts)
        # In this order, on the head of a request; `public` also before a path is known to exist or not.
        self._public: list[Guard] = [HostGuard(settings.allowed_hosts), OriginGuard(settings.allowed_origins)]
        size = SizeGuard(settings.limits.request_body, front.bodies.refuse_larger)
        private: list[Guard] = [TokenGuard(parts.token), size]
        json, stream = JsonGuard(), AcceptGuard("text/event-stream")
        mcp = {
            "POST": Route(
                front.post,
                [*private, json, AcceptGuard("application/json", "text/event-stream")],
                front.answer,
            ),
            "GET": Route(front.get, [*private, stream]),
            "DELETE": Route(front.delete, private),
        }
        self._routes: dict[str, dict[str, Route]] = {
            "/mcp": mcp,
            "/": mcp,
            "/sse": {"GET": Route(front.sse, [*private, stream])},
            MESSAGES_PATH: {"POST": Route(front.messages, [*private, json])},
            HEALTH_PATH: {"GET": Route(front.health, [size])},  # without the token
        }
        self.guests: Guests | None = None
        self._token = parts.token
        self.body_limit = settings.limits.request_body

    async def start(self) -> None:
        """Called before the first connection."""
        await self.front.start()

    async def close(self) -> None:
        """Ends what requests wait for."""
        await self.front.close()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answers one request, whatever happens."""
        connection = head_is_complete(request)
        try:
            if self.guests is not None and (guest := self.guests.welcomes(request)) is not None:
                note_token_shown(connection)
                return await guest(request)
            refused = self._refuse(request)
            if refused is not None:
                return refused
            route = self._routes[request.path][request.method]
            if request.path != HEALTH_PATH:
                note_token_shown(connection)
                self._admit_again(request, route, connection)
            await answer_expectation(request)
            return await route.handler(request)
        except ConnectionError:
            return refusal(400, "The connection is gone")  # nobody reads it, but raising would be logged
        except Exception:  # noqa: BLE001 - boundary: whatever happens
            return _failed(request)
        finally:
            request_is_done(request, connection)

    def _refuse(self, request: web.Request) -> web.Response | None:
        """Why nobody serves a request; None when there is a route for it and no guard refuses."""
        for guard in self._public:
            if refused := guard.refuse(request):
                return refused
        path = request.path
        methods = self._routes.get(path)
        if methods is None:
            return web.Response(status=404, text="Not Found")
        if request.method not in methods:
            return refusal(405, "Method not allowed", Allow=",".join(sorted(methods)))
        for guard in methods[request.method].guards:
            if refused := guard.refuse(request):
                return refused
        return None

    def _admit_again(self, request: web.Request, route: Route, connection: Connection | None) -> None:
        """Requests with this head need no guard any more, if its head alone decided."""
        if connection is None or connection.remake is None or (handle := route.body_handler) is None:
            return
        if request.version != HttpVersion11 or not request.keep_alive or hdrs.EXPECT in request.headers:
            return
        token, make, limit = self._token.value, connection.remake, self.body_limit

        def serve(body: bytes) -> Coroutine[Any, Any, bool] | None:
            # A larger body may come from a client that was asked for it.
            return _serve(make(), body, handle) if self._token.value == token and len(body) <= limit else None

        connection.repeats.admit(serve)


async def _serve(request: web.Request, body: bytes, handle: BodyHandler) -> bool:
    """Answers one request whose head was let in; whether the connection stays open."""
    try:
        try:
            response = await handle(request, body)
        except Exception:  # noqa: BLE001 - boundary: as in `App.handle`
            response = _failed(request)
        await response.prepare(request)
        await response.write_eof()
        return bool(response.keep_alive)
    except ConnectionError:
        return False


def _failed(request: web.Request) -> web.Response:
    """A fault of ours is logged, and the client is told nothing about it."""
    logger.exception("%s %s failed", request.method, request.path)
    return refusal(500, "Internal error", code=jsonrpc.INTERNAL_ERROR)


async def answer_expectation(request: web.Request) -> None:
    """Lets a client send its body that waits for leave to."""
    if request.headers.get(hdrs.EXPECT, "").lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0  # aiohttp takes what was written for the begin of the answer
