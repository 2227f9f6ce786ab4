"""The aiohttp application: what is served, and who guards it, as lists.

Receives: HTTP requests. Sends: them to `front.py`, once no guard refuses. Does not know about: MCP.
"""

from __future__ import annotations

import logging

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler, Middleware

from . import jsonrpc
from .connections import Runner, head_is_complete, request_is_done
from .context import Context
from .front import Front
from .guards import Guard, refusal
from .guards.host import HostGuard, OriginGuard
from .guards.limits import SizeGuard
from .guards.token import TokenGuard
from .transports.sse import MESSAGES_PATH

FRONT = web.AppKey("front", Front)
OPEN_PATHS = frozenset({"/health"})
"""Served without the token."""

logger = logging.getLogger(__name__)


def create_app(context: Context) -> web.Application:
    """The application. Serve it with `create_runner`."""
    settings = context.settings
    front = Front(context)
    # In this order, on the head of a request; `public` also before a path is known to exist or not.
    public: list[Guard] = [HostGuard(settings.allowed_hosts), OriginGuard(settings.allowed_origins)]
    private: list[Guard] = [
        TokenGuard(context.token),
        SizeGuard(settings.limits.request_body, front.bodies.refuse_larger),
    ]

    routes: list[tuple[str, str, Handler]] = [
        ("POST", "/mcp", front.post),
        ("GET", "/mcp", front.get),
        ("DELETE", "/mcp", front.delete),
        ("POST", "/", front.post),
        ("GET", "/", front.get),
        ("DELETE", "/", front.delete),
        ("GET", "/sse", front.sse),
        ("POST", MESSAGES_PATH, front.messages),
        ("GET", "/health", front.health),
    ]

    app = web.Application(middlewares=[_gate(public, private)], client_max_size=settings.limits.request_body)
    app[FRONT] = front
    for method, path, handler in routes:
        app.router.add_route(method, path, handler, expect_handler=_leave_to_the_gate)
    app.on_startup.append(lambda _: front.start())
    app.on_shutdown.append(lambda _: front.close())
    return app


def create_runner(app: web.Application) -> web.AppRunner:
    """The runner for the application; sites are added as to any `AppRunner`."""
    return Runner(app)


def _gate(public: list[Guard], private: list[Guard]) -> Middleware:
    @web.middleware
    async def gate(request: web.Request, handler: Handler) -> web.StreamResponse:
        connection = head_is_complete(request)
        try:
            refused = _refused(request, public, private)
            if refused is not None:
                return refused
            if hdrs.EXPECT in request.headers:
                await _continue(request)
            return await handler(request)
        except ConnectionError:
            return refusal(400, "The connection is gone")  # nobody reads it, but raising would be logged
        except Exception:  # boundary: a fault of ours is logged, and the client is told nothing about it
            logger.exception("%s %s failed", request.method, request.path)
            return refusal(500, "Internal error", code=jsonrpc.INTERNAL_ERROR)
        finally:
            request_is_done(request, connection)

    return gate


def _refused(request: web.Request, public: list[Guard], private: list[Guard]) -> web.Response | None:
    for guard in public:
        if refused := guard.refuse(request):
            return refused
    if (missing := request.match_info.http_exception) is not None:
        if isinstance(missing, web.HTTPMethodNotAllowed):
            return refusal(405, "Method not allowed", Allow=missing.headers["Allow"])
        return web.Response(status=404, text="Not Found")
    for guard in private:
        if request.path in OPEN_PATHS and isinstance(guard, TokenGuard):
            continue
        if refused := guard.refuse(request):
            return refused
    return None


async def _leave_to_the_gate(request: web.Request) -> None:
    """aiohttp would ask for the body before anyone looked at the head."""


async def _continue(request: web.Request) -> None:
    if request.headers[hdrs.EXPECT].lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0  # aiohttp takes what was written for the begin of the answer


__all__ = ["FRONT", "create_app", "create_runner"]
