"""WebSockets: one session over one socket, JSON-RPC as text, a message a frame.

Nothing is compressed: a small frame must not become a large message.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from aiohttp import WSCloseCode, WSMsgType, hdrs, web

from .. import jsonrpc
from ..http.connection import is_connected
from ..http.guards import refusal
from ..http.streamable import check_batch, full
from ..sessions.registry import FullError, Sessions
from ..sessions.session import Session
from ..values import Endpoint, Scope

if TYPE_CHECKING:
    from ..mcp.loader import Loader

PING_SECONDS = 30.0
"""Of silence, after which the socket is kept open by a ping. An agent that is stopped for a while need not
answer it: the system tells when one is gone."""

CLOSE_SECONDS = 1.0
"""For the other side to answer the end."""


class WebSockets:
    """See the head of this file.

    Args:
        sessions: all of them.
        loader: has the kernel.
        limit: bytes of a message.
    """

    def __init__(self, sessions: Sessions, loader: Loader, limit: int) -> None:
        self._sessions = sessions
        self._loader = loader
        self._limit = limit

    async def serve(self, request: web.Request, endpoint: Endpoint) -> web.StreamResponse:
        """Opens a session and stays until either side goes."""
        if request.method != "GET" or request.headers.get(hdrs.UPGRADE, "").lower().strip() != "websocket":
            return refusal(426, "This token is for a WebSocket", Upgrade="websocket")
        kernel = self._loader.kernel or await self._loader.load()
        try:
            session = self._sessions.create(kernel, "websocket", Scope(companion=endpoint.name))
        except FullError:
            return full()
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
                return refusal(400, failure.text or "No WebSocket")
            await self._run(request, socket, session)
        finally:
            self._sessions.drop(session, "disconnected")
        return socket

    async def _run(self, request: web.Request, socket: web.WebSocketResponse, session: Session) -> None:
        connected = partial(_stands, request, socket)
        turn = session.standalone.attach(connected)
        writing = asyncio.get_running_loop().create_task(_write(socket, session, turn))
        try:
            await self._read(socket, session, connected)
        except ConnectionError:
            pass  # it is gone
        finally:
            writing.cancel()
            await asyncio.wait({writing})
            session.standalone.leave(turn)

    async def _read(self, socket: web.WebSocketResponse, session: Session, connected: partial[bool]) -> None:
        async for message in socket:
            if message.type is not WSMsgType.TEXT:
                await socket.close(code=WSCloseCode.UNSUPPORTED_DATA, message=b"text only")
                return
            body = jsonrpc.parse(message.data.encode())
            fault = _fault(session, body)
            if fault is not None:
                session.standalone.push(jsonrpc.dumps(jsonrpc.error(fault.id, fault.code, fault.message)))
                continue
            for each in body.messages if isinstance(body, jsonrpc.Batch) else (body,):
                if isinstance(each, jsonrpc.Request):
                    session.answer_later(connected, each, self._sessions.identify)
                elif not isinstance(each, jsonrpc.Fault | jsonrpc.Batch):
                    await session.receive(each)


def _stands(request: web.Request, socket: web.WebSocketResponse) -> bool:
    return not socket.closed and is_connected(request)


async def _write(socket: web.WebSocketResponse, session: Session, turn: int) -> None:
    """Writes what the session has, until it ends or its reader is let go."""
    outbox = session.standalone
    try:
        while True:
            try:
                event = await outbox.next(turn, PING_SECONDS)
            except TimeoutError:
                await socket.ping()
                continue
            if event is None:
                break
            await socket.send_str(event.data.decode())
            outbox.wrote(turn, event)
        await socket.close(code=WSCloseCode.GOING_AWAY)
    except ConnectionError:
        pass  # the reader hears of it


def _fault(session: Session, body: jsonrpc.Message | jsonrpc.Batch | jsonrpc.Fault) -> jsonrpc.Fault | None:
    if isinstance(body, jsonrpc.Fault):
        return body
    if isinstance(body, jsonrpc.Batch):
        return check_batch(session, body)
    if isinstance(body, jsonrpc.Request) and session.is_duplicate(body):
        return jsonrpc.Fault(jsonrpc.INVALID_REQUEST, "Request id is in flight", body.id)
    return None
