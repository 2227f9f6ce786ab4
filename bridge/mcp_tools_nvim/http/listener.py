"""The listener: serves sockets, and ends connections that do not get on (aiohttp would wait for them)."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from functools import partial
from operator import itemgetter
from typing import Any, Protocol

from aiohttp import web
from aiohttp.http import HttpProcessingError

from ..calls.backpressure import Backpressure
from .connection import Connection

HEAD_SECONDS = 10.0
"""From the first byte of a request (for the first one: from the connection) to the end of its head."""

READ_SECONDS = 30.0
"""A client that takes nothing of its answer for so long has lost it; an event stream itself goes on."""

KEEP_ALIVE_SECONDS = 75.0
"""Idle connections between requests; longer than any known client keeps one."""

UNREAD_BYTES = 64 * 1024 * 1024
"""What all clients together may leave unread, room for six results of the largest size. Beyond that, those
that have taken nothing for `UNREAD_SECONDS` lose their answers, the longest silent one first."""

UNREAD_SECONDS = 1.0

SHUTDOWN_SECONDS = 1.0
"""What handlers get at the end, after everything that they wait for was told to end."""

logger = logging.getLogger(__name__)
logger.addFilter(lambda record: not _is_of_the_client(record))

_SWEEP_SECONDS = 0.5
_NEVER = 365 * 86400.0
_TIMEOUT = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class Application(Protocol):
    """What is served.

    Attributes:
        body_limit: most bytes of a body.
    """

    body_limit: int

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answers one request; does not raise."""

    async def start(self) -> None:
        """Called before the first connection."""

    async def close(self) -> None:
        """Called when no more connections are taken; ends what requests wait for."""


class Runner(web.ServerRunner):
    """Serves an application; its connections have a deadline for the head of a request.

    Args:
        app: to serve; made while the loop runs.
        head_seconds: see `HEAD_SECONDS`.
        read_seconds: see `READ_SECONDS`.
        unread_bytes: see `UNREAD_BYTES`.
        room: counts what waits for clients to read.
        keep_alive_seconds: see `KEEP_ALIVE_SECONDS`.
    """

    __slots__ = ("_app", "_deadlines")

    def __init__(
        self,
        app: Application,
        head_seconds: float = HEAD_SECONDS,
        read_seconds: float = READ_SECONDS,
        unread_bytes: int = UNREAD_BYTES,
        room: Backpressure | None = None,
        keep_alive_seconds: float = KEEP_ALIVE_SECONDS,
    ) -> None:
        loop = asyncio.get_running_loop()
        make_request: Any = partial(web.Request, loop=loop, client_max_size=app.body_limit)
        handle: Any = app.handle  # typed for requests of the class that `make_request` makes
        server = web.Server(
            handle,
            request_factory=make_request,
            handler_cancellation=False,  # a lost connection does not cancel a call of the session era
        )
        super().__init__(server, shutdown_timeout=SHUTDOWN_SECONDS)
        self._app = app
        let_go = _nothing if room is None else room.let_go
        self._deadlines = _Deadlines(head_seconds, read_seconds, unread_bytes, let_go, keep_alive_seconds)
        if room is not None:
            room.watch(self._deadlines.unread, self._deadlines.ease)

    @property
    def server(self) -> Any:
        """What makes the protocol of a new connection."""
        server = super().server
        return None if server is None else partial(self._deadlines.connect, server)

    async def setup(self) -> None:
        """Starts the application."""
        await self._app.start()
        await super().setup()

    async def listen(self, listening: socket.socket) -> None:
        """Serves one more socket, which is bound and listens already."""
        await web.SockSite(self, listening).start()

    async def stop_listening(self) -> None:
        """Takes no more connections; those that there are go on."""
        for site in self.sites:
            await site.stop()

    async def shutdown(self) -> None:
        """Ends what requests wait for."""
        await self._app.close()

    async def cleanup(self) -> None:
        """Ends everything that was set up."""
        self._deadlines.stop()
        await super().cleanup()


def _is_of_the_client(record: logging.LogRecord) -> bool:
    """aiohttp logs a trace for what is no HTTP, and for a body that is not encoded as it says; whoever sent
    it was answered, and it says nothing about us."""
    known = (HttpProcessingError, web.RequestPayloadError)
    return record.exc_info is not None and isinstance(record.exc_info[1], known)


def _nothing() -> None:
    """Nobody wants to know."""


class _Deadlines:
    """Looks at all connections twice a second: cheaper than a timer for each request."""

    def __init__(
        self,
        head_seconds: float,
        read_seconds: float,
        unread_bytes: int,
        let_go: Callable[[], None],
        keep_alive_seconds: float,
    ) -> None:
        self._let_go = let_go
        self._head = head_seconds
        self._keep_alive = keep_alive_seconds
        self._unread_bytes = unread_bytes
        self._read = read_seconds
        self._pause = min(_SWEEP_SECONDS, head_seconds / 4, read_seconds / 4)
        self._open: set[Connection] = set()
        self._strangers: dict[Connection, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def connect(self, server: web.Server) -> Connection:
        loop = asyncio.get_running_loop()
        if self._timer is None:
            self._sweep_later(loop)
        return Connection(
            server,
            self._open,
            self._strangers,
            self._let_go,
            loop=loop,
            access_log=None,
            keepalive_timeout=_NEVER,  # it would count from the last request that it has parsed itself
            lingering_time=2.0,
            logger=logger,
        )

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _sweep_later(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = loop.call_later(self._pause, self._sweep, loop)

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        for connection in list(self._open):
            self._look_at(connection, now)
        self.ease(self.unread() - self._unread_bytes)
        self._timer = None
        if self._open:
            self._sweep_later(loop)

    def unread(self) -> int:
        """Bytes that wait for clients to read."""
        return sum(size for _, _, size in self._slow())

    def ease(self, size: int) -> None:
        """Ends the connections that are furthest behind, until so many bytes less wait."""
        if size <= 0:
            return
        now = asyncio.get_running_loop().time()
        for since, transport, waiting in sorted(self._slow(), key=itemgetter(0)):
            if size <= 0 or now - since <= UNREAD_SECONDS:
                return
            size -= waiting
            transport.abort()

    def _slow(self) -> list[tuple[float, asyncio.Transport, int]]:
        return [
            (each.unread[1], each.transport, max(each.answer, each.transport.get_write_buffer_size()))
            for each in self._open
            if each.unread is not None and each.transport is not None
        ]

    def _look_at(self, connection: Connection, now: float) -> None:
        transport = connection.transport
        if transport is None:
            return
        if connection.since is not None and now - connection.since > self._head:
            connection.since = None
            transport.write(_TIMEOUT)
            transport.close()
        elif connection.unread is not None:
            waiting = transport.get_write_buffer_size()
            before, at = connection.unread
            if waiting != before:
                connection.unread = (waiting, now)
            elif now - at > self._read:
                transport.abort()
        elif connection.is_idle() and now - connection.idle_since > self._keep_alive:
            transport.close()
