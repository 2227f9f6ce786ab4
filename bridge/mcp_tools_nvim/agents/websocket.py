"""WebSocket transport for terminal agents: one session per socket, one JSON-RPC message per text frame.

Compression is off, so that a small frame cannot become a large message.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from aiohttp import WSCloseCode, WSMsgType, hdrs, web

from .. import jsonrpc
from ..http.guards import refusal
from ..http.listener import is_connected
from ..http.streamable import full_response, serve_later
from ..sessions.registry import FullError, Sessions
from ..sessions.session import Session
from ..values import AgentEndpoint, Scope

if TYPE_CHECKING:
    from ..http.handlers import Loader

PING_SECONDS = 30.0
"""Silence before a ping keeps the socket open. An agent need not answer it: it may be suspended, and the
system reports a closed connection."""

CLOSE_SECONDS = 1.0
"""Time for the agent to answer the closing frame."""


@dataclass(slots=True)
class WebSockets:
    """Serves agents over WebSockets.

    Args:
        sessions: all sessions.
        loader: loads the kernel.
        limit: maximum bytes of a message.
    """

    _sessions: Sessions
    _loader: Loader
    _limit: int

    async def serve(self, request: web.Request, endpoint: AgentEndpoint) -> web.StreamResponse:
        """Opens a session and serves it until either side closes the socket."""
        if request.method != "GET" or request.headers.get(hdrs.UPGRADE, "").lower().strip() != "websocket":
            return refusal(426, "This token is for a WebSocket", Upgrade="websocket")
        kernel = await self._loader.load()
        try:
            session = self._sessions.create(kernel, "websocket", Scope(agent=endpoint.name))
        except FullError:
            return full_response()
        socket = web.WebSocketResponse(
            timeout=CLOSE_SECONDS,
            protocols=() if endpoint.subprotocol is None else (endpoint.subprotocol,),
            compress=False,
            max_msg_size=self._limit,
        )
        try:
            try:
                await socket.prepare(request)
            except web.HTTPException as failure:
                return refusal(400, failure.text or "Not a WebSocket request")
            await self._run(request, socket, session)
        finally:
            self._sessions.drop(session, "disconnected")
        return socket

    async def _run(self, request: web.Request, socket: web.WebSocketResponse, session: Session) -> None:
        connected = partial(_is_open, request, socket)
        reader = session.standalone.attach(connected)
        writing = asyncio.get_running_loop().create_task(_write(socket, session, reader))
        try:
            await self._read(socket, session, connected)
        except ConnectionError:
            pass  # the agent has disconnected
        finally:
            writing.cancel()
            await asyncio.wait({writing})
            session.standalone.leave(reader)

    async def _read(self, socket: web.WebSocketResponse, session: Session, connected: partial[bool]) -> None:
        async for message in socket:
            if message.type is not WSMsgType.TEXT:
                await socket.close(code=WSCloseCode.UNSUPPORTED_DATA, message=b"text only")
                return
            body = jsonrpc.parse(message.data.encode())
            if fault := await serve_later(self._sessions, session, body, connected):
                session.standalone.push(jsonrpc.dumps(jsonrpc.error(fault.id, fault.code, fault.message)))


def _is_open(request: web.Request, socket: web.WebSocketResponse) -> bool:
    return not socket.closed and is_connected(request)


async def _write(socket: web.WebSocketResponse, session: Session, reader: int) -> None:
    """Writes the session's messages, until it ends or another reader takes over."""
    outbox = session.standalone
    try:
        while True:
            try:
                event = await outbox.next(reader, PING_SECONDS)
            except TimeoutError:
                await socket.ping()
                continue
            if event is None:
                break
            await socket.send_str(event.data.decode())
            outbox.wrote(reader, event)
        await socket.close(code=WSCloseCode.GOING_AWAY)
    except ConnectionError:
        pass  # `_read` ends, too
