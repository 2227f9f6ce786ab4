"""HTTP with SSE (version 2024-11-05): GET opens the stream to the client, POST receives messages."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from aiohttp import web

from .. import jsonrpc
from ..sessions.registry import FullError, Sessions
from .guards import refusal
from .listener import is_connected
from .response import attach, write_stream
from .scope import ScopeError, read_scope
from .streamable import fault_response, full_response, serve_later

if TYPE_CHECKING:
    from ..mcp.kernel import Kernel
    from .handlers import Bodies

MESSAGES_PATH = "/messages"
SESSION_QUERY = "session_id"


class Sse:
    """The legacy SSE transport."""

    def __init__(self, sessions: Sessions, bodies: Bodies) -> None:
        self._sessions = sessions
        self._bodies = bodies

    async def get(self, http: web.Request, kernel: Kernel) -> web.StreamResponse:
        """Opens a session and serves it until the client disconnects."""
        try:
            session = self._sessions.create(kernel, "sse", read_scope(http))
        except FullError:
            return full_response()
        except ScopeError as failure:
            return refusal(400, str(failure))
        endpoint = f"event: endpoint\ndata: {MESSAGES_PATH}?{SESSION_QUERY}={session.id}\n\n".encode()
        try:
            stream = session.standalone
            return await write_stream(stream, http, attach(stream, http), first=endpoint)
        finally:
            self._sessions.drop(session, "disconnected")

    async def post(self, http: web.Request) -> web.Response:
        """Accepts messages; their answers are sent over the stream."""
        session = self._sessions.find_sse(http.query.get(SESSION_QUERY, ""))
        if session is None:
            return refusal(404, "Session not found; open the stream again")
        data = await self._bodies.read(http)
        if isinstance(data, web.Response):
            return data
        body = jsonrpc.parse(data)
        if fault := await serve_later(self._sessions, session, body, partial(is_connected, http)):
            return fault_response(fault)
        return web.Response(status=202, text="Accepted")
