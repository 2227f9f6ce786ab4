"""The application: routes and their guards.

aiohttp's own application (router, middleware, signals) would take a tenth of a call's time.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol

from aiohttp import hdrs, web

from .. import jsonrpc
from .connection import connection_of
from .guards import AcceptGuard, Guard, HostGuard, JsonGuard, OriginGuard, SizeGuard, TokenGuard, refusal
from .handlers import Handlers
from .legacy_sse import MESSAGES_PATH
from .parts import Parts

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

HEALTH_PATH = "/health"
"""Path that returns a short status without the token."""

logger = logging.getLogger(__name__)


class Route(NamedTuple):
    """The handler of a path and method, and its guards in order.

    `is_private`: the guards check the token.
    """

    handler: Handler
    guards: list[Guard]
    is_private: bool = True


class AgentHandlers(Protocol):
    """Handlers of terminal agents, which have their own tokens at the same port."""

    def match(self, request: web.Request) -> Handler | None:
        """Returns the handler of a request with the token of an agent; None for other requests."""


class App:
    """The application. Served by `listener.Runner`.

    Attributes:
        front: the handlers.
        agents: matched before the guards; it has its own.
    """

    def __init__(self, parts: Parts) -> None:
        settings = parts.settings
        self.front = front = Handlers(parts)
        # In this order, on the head of a request. `_public` comes first, to hide which paths exist.
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
        self.agents: AgentHandlers | None = None
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
            if self.agents is not None and (agent_handler := self.agents.match(request)) is not None:
                if connection is not None:
                    connection.authenticate()
                return await agent_handler(request)
            route = self._admit(request)
            if not isinstance(route, Route):
                return route
            if connection is not None and not connection.authenticated and route.is_private:
                connection.authenticate()
            if hdrs.EXPECT in request.headers:
                await answer_expectation(request)
            return await route.handler(request)
        except ConnectionError:
            return refusal(400, "The connection is closed")  # nobody reads it, but raising would be logged
        except Exception:  # noqa: BLE001 - boundary
            return _failed(request)
        finally:
            if connection is not None:
                connection.request_is_done(request)

    def _admit(self, request: web.Request) -> Route | web.Response:
        """Returns the route of a request, or the response of the guard that refuses it."""
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
    """Logs our fault, and hides it from the client."""
    logger.exception("%s %s failed", request.method, request.path)
    return refusal(500, "Internal error", code=jsonrpc.INTERNAL_ERROR)


async def answer_expectation(request: web.Request) -> None:
    """Tells a client with `Expect: 100-continue` to send its body."""
    if request.headers.get(hdrs.EXPECT, "").lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0  # otherwise aiohttp takes this for the begin of the answer
