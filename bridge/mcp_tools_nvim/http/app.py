"""The application: routes and their guards.

aiohttp's own application (router, middleware, signals) would take a tenth of a call's time.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from aiohttp import hdrs, web

from .. import jsonrpc
from . import guards
from .handlers import Handlers, Parts
from .legacy_sse import MESSAGES_PATH
from .listener import Connection, connection_of

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

HEALTH_PATH = "/health"
"""Path that returns a short status without the token."""

logger = logging.getLogger(__name__)


class Route(NamedTuple):
    """The handler of a path and method, and its guards in order.

    `is_private`: the token is required, and checked before the guards.
    """

    handler: Handler
    guards: list[guards.Guard]
    is_private: bool = True


class Application:
    """An application that `listener.Runner` serves.

    Args:
        body_limit: maximum bytes of a body.
    """

    def __init__(self, body_limit: int) -> None:
        self.body_limit = body_limit

    async def serve(self, request: web.Request, connection: Connection) -> web.StreamResponse:
        """Answers a request."""
        raise NotImplementedError

    async def start(self) -> None:
        """Called before the first connection."""

    async def close(self) -> None:
        """Called when no more connections are accepted; makes pending requests end."""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answers a request, whatever happens."""
        connection = connection_of(request)
        connection.on_head_complete(request)
        try:
            return await self.serve(request, connection)
        except ConnectionError:
            # No client receives this response, but an exception would be logged.
            return guards.refusal(400, "The connection is closed")
        except Exception:  # boundary: the error is logged, and hidden from the client
            logger.exception("%s %s failed", request.method, request.path)
            return guards.refusal(500, "Internal error", code=jsonrpc.INTERNAL_ERROR)
        finally:
            connection.on_request_done(request)


class App(Application):
    """The application at the port.

    Attributes:
        handlers: the handlers.
        match_agent: returns the handler of a request with the token of a terminal agent, which has guards of
            its own; None for other requests.
    """

    def __init__(self, parts: Parts) -> None:
        settings = parts.settings
        super().__init__(settings.limits.request_body)
        self.handlers = handlers = Handlers(parts)
        # Guards check the head of a request. `_public` comes first, so that refused clients learn no paths.
        hosts, origins = settings.allowed_hosts, settings.allowed_origins
        self._public = [guards.host_guard(hosts), guards.origin_guard(origins)]
        size, stream = handlers.bodies.refuse, guards.accept_guard("text/event-stream")
        both = guards.accept_guard("application/json", "text/event-stream")
        mcp = {
            "POST": Route(handlers.post, [size, guards.json_guard, both]),
            "GET": Route(handlers.get, [size, stream]),
            "DELETE": Route(handlers.delete, [size]),
        }
        self._routes: dict[str, dict[str, Route]] = {
            "/mcp": mcp,
            "/": mcp,
            "/sse": {"GET": Route(handlers.sse, [size, stream])},
            MESSAGES_PATH: {"POST": Route(handlers.messages, [size, guards.json_guard])},
            HEALTH_PATH: {"GET": Route(handlers.health, [size], is_private=False)},
        }
        self.match_agent: Callable[[web.Request], Handler | None] = lambda request: None

    async def start(self) -> None:
        """Called before the first connection."""
        await self.handlers.start()

    async def close(self) -> None:
        """Makes pending requests end."""
        await self.handlers.close()

    async def serve(self, request: web.Request, connection: Connection) -> web.StreamResponse:
        """Answers a request."""
        authorized = self.handlers.is_authorized(request)
        if not authorized and (agent_handler := self.match_agent(request)) is not None:
            connection.authenticate()
            return await agent_handler(request)
        route = self._admit(request, authorized)
        if not isinstance(route, Route):
            return route
        if authorized:
            connection.authenticate()
        if hdrs.EXPECT in request.headers:
            await answer_expectation(request)
        return await route.handler(request)

    def _admit(self, request: web.Request, authorized: bool) -> Route | web.Response:
        """Returns the route of a request, or the response that refuses it."""
        if (refused := guards.refused_by(self._public, request)) is not None:
            return refused
        methods = self._routes.get(request.path)
        if methods is None:
            return web.Response(status=404, text="Not Found")
        route = methods.get(request.method)
        if route is None:
            return guards.refusal(405, "Method not allowed", Allow=",".join(sorted(methods)))
        if route.is_private and not authorized:
            return guards.unauthorized()
        refused = guards.refused_by(route.guards, request)
        return route if refused is None else refused


async def answer_expectation(request: web.Request) -> None:
    """Tells a client with `Expect: 100-continue` to send its body."""
    if request.headers.get(hdrs.EXPECT, "").lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0  # otherwise aiohttp takes this for the start of the answer
