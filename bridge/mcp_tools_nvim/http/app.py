"""The application: what is served, and who guards it, as lists.

aiohttp's own application (router, middleware, signals) would be a tenth of a call, and nothing here needs it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol

from aiohttp import hdrs, web

from .. import jsonrpc
from .connection import connection_of
from .endpoints import Front
from .guards import Guard, refusal
from .guards.host import HostGuard, OriginGuard
from .guards.size import SizeGuard
from .guards.token import TokenGuard
from .guards.types import AcceptGuard, JsonGuard
from .legacy_sse import MESSAGES_PATH
from .parts import Parts

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

HEALTH_PATH = "/health"
"""Answered without the token; a little."""

logger = logging.getLogger(__name__)


class Route(NamedTuple):
    """The handler of a path and method, and the guards that are asked before it, in this order.

    `is_private`: one of the guards is that of the token.
    """

    handler: Handler
    guards: list[Guard]
    is_private: bool = True


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
            ),
            "GET": Route(front.get, [*private, stream]),
            "DELETE": Route(front.delete, private),
        }
        self._routes: dict[str, dict[str, Route]] = {
            "/mcp": mcp,
            "/": mcp,
            "/sse": {"GET": Route(front.sse, [*private, stream])},
            MESSAGES_PATH: {"POST": Route(front.messages, [*private, json])},
            HEALTH_PATH: {"GET": Route(front.health, [size], is_private=False)},
        }
        self.guests: Guests | None = None
        self.body_limit = settings.limits.request_body

    async def start(self) -> None:
        """Called before the first connection."""
        await self.front.start()

    async def close(self) -> None:
        """Ends what requests wait for."""
        await self.front.close()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answers one request, whatever happens."""
        connection = connection_of(request)
        if connection is not None:
            connection.head_is_complete(request)
        try:
            if self.guests is not None and (guest := self.guests.welcomes(request)) is not None:
                if connection is not None:
                    connection.become_known()
                return await guest(request)
            route = self._admit(request)
            if not isinstance(route, Route):
                return route
            if connection is not None and not connection.known and route.is_private:
                connection.become_known()
            if hdrs.EXPECT in request.headers:
                await answer_expectation(request)
            return await route.handler(request)
        except ConnectionError:
            return refusal(400, "The connection is gone")  # nobody reads it, but raising would be logged
        except Exception:  # noqa: BLE001 - boundary: whatever happens
            return _failed(request)
        finally:
            if connection is not None:
                connection.request_is_done(request)

    def _admit(self, request: web.Request) -> Route | web.Response:
        """The route of a request; or the answer that refuses it, when there is none or a guard says so."""
        for guard in self._public:
            if refused := guard.refuse(request):
                return refused
        path = request.path
        methods = self._routes.get(path)
        if methods is None:
            return web.Response(status=404, text="Not Found")
        route = methods.get(request.method)
        if route is None:
            return refusal(405, "Method not allowed", Allow=",".join(sorted(methods)))
        for guard in route.guards:
            if refused := guard.refuse(request):
                return refused
        return route


def _failed(request: web.Request) -> web.Response:
    """A fault of ours is logged, and the client is told nothing about it."""
    logger.exception("%s %s failed", request.method, request.path)
    return refusal(500, "Internal error", code=jsonrpc.INTERNAL_ERROR)


async def answer_expectation(request: web.Request) -> None:
    """Lets a client send its body that waits for leave to."""
    if request.headers.get(hdrs.EXPECT, "").lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0  # aiohttp takes what was written for the begin of the answer
