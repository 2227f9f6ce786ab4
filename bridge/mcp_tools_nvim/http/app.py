"""The application: what is served, and who guards it, as lists.

Receives: HTTP requests. Sends: them to `endpoints.py`, once no guard refuses. Does not know about: MCP.

aiohttp's own application (router, middleware, signals) would be a tenth of a call, and nothing here needs it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol

from aiohttp import hdrs, web

from .. import jsonrpc
from .connection import head_is_complete, note_token_shown, request_is_done
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
    """The handler of a path and method, and the guards that are asked before it, in this order."""

    handler: Handler
    guards: list[Guard]


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
            HEALTH_PATH: {"GET": Route(front.health, [size])},  # without the token
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


def _failed(request: web.Request) -> web.Response:
    """A fault of ours is logged, and the client is told nothing about it."""
    logger.exception("%s %s failed", request.method, request.path)
    return refusal(500, "Internal error", code=jsonrpc.INTERNAL_ERROR)


async def answer_expectation(request: web.Request) -> None:
    """Lets a client send its body that waits for leave to."""
    if request.headers.get(hdrs.EXPECT, "").lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0  # aiohttp takes what was written for the begin of the answer
