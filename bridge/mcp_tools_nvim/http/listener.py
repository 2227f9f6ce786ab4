"""The listener: serves sockets, and closes connections that make no progress; aiohttp would wait for them."""

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
"""Maximum time for the head of a request, from its first byte; for the first request, from the connection."""

READ_SECONDS = 30.0
"""A connection whose client reads nothing for this time is closed; an event stream can be resumed."""

KEEP_ALIVE_SECONDS = 75.0
"""Idle time after which a connection is closed; longer than any known client keeps one."""

UNREAD_BYTES = 64 * 1024 * 1024
"""Maximum unread bytes of all clients: six results of the maximum size. Above it, connections whose clients
have read nothing for `UNREAD_SECONDS` are closed, the longest silent one first."""

UNREAD_SECONDS = 1.0

SHUTDOWN_SECONDS = 1.0
"""Time for handlers to end at shutdown, after their calls were cancelled."""

logger = logging.getLogger(__name__)
logger.addFilter(lambda record: not _is_of_the_client(record))

_SWEEP_SECONDS = 0.5
_NEVER = 365 * 86400.0
_TIMEOUT = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class Application(Protocol):
    """An application that `Runner` can serve.

    Attributes:
        body_limit: maximum bytes of a body.
    """

    body_limit: int

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answers one request; does not raise."""

    async def start(self) -> None:
        """Called before the first connection."""

    async def close(self) -> None:
        """Called after the last connection was accepted; ends what requests wait for."""


class Runner(web.ServerRunner):
    """Serves an application, with deadlines for its connections.

    Args:
        app: the application.
        head_seconds: see `HEAD_SECONDS`.
        read_seconds: see `READ_SECONDS`.
        unread_bytes: see `UNREAD_BYTES`.
        backpressure: counts unread bytes.
        keep_alive_seconds: see `KEEP_ALIVE_SECONDS`.
    """

    __slots__ = ("_app", "_deadlines")

    def __init__(
        self,
        app: Application,
        head_seconds: float = HEAD_SECONDS,
        read_seconds: float = READ_SECONDS,
        unread_bytes: int = UNREAD_BYTES,
        backpressure: Backpressure | None = None,
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
        on_drained = _nothing if backpressure is None else backpressure.let_go
        self._deadlines = _Deadlines(head_seconds, read_seconds, unread_bytes, on_drained, keep_alive_seconds)
        if backpressure is not None:
            backpressure.watch(self._deadlines.unread, self._deadlines.abort_slow)

    @property
    def server(self) -> Any:
        """The factory of the protocol of a new connection."""
        server = super().server
        return None if server is None else partial(self._deadlines.connect, server)

    async def setup(self) -> None:
        """Starts the application."""
        await self._app.start()
        await super().setup()

    async def listen(self, listening: socket.socket) -> None:
        """Serves one more listening socket."""
        await web.SockSite(self, listening).start()

    async def stop_listening(self) -> None:
        """Accepts no more connections; open ones continue."""
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
    """Whether a log record is about a client's invalid request, which was answered and is not our fault."""
    expected = (HttpProcessingError, web.RequestPayloadError)
    return record.exc_info is not None and isinstance(record.exc_info[1], expected)


def _nothing() -> None:
    """Does nothing."""


class _Deadlines:
    """Checks all connections twice a second, which is cheaper than a timer per request."""

    def __init__(
        self,
        head_seconds: float,
        read_seconds: float,
        unread_bytes: int,
        on_drained: Callable[[], None],
        keep_alive_seconds: float,
    ) -> None:
        self._on_drained = on_drained
        self._head = head_seconds
        self._keep_alive = keep_alive_seconds
        self._unread_bytes = unread_bytes
        self._read = read_seconds
        self._pause = min(_SWEEP_SECONDS, head_seconds / 4, read_seconds / 4)
        self._open: set[Connection] = set()
        self._unauthenticated: dict[Connection, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def connect(self, server: web.Server) -> Connection:
        loop = asyncio.get_running_loop()
        if self._timer is None:
            self._sweep_later(loop)
        return Connection(
            server,
            self._open,
            self._unauthenticated,
            self._on_drained,
            loop=loop,
            access_log=None,
            keepalive_timeout=_NEVER,  # `_check` does it
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
            self._check(connection, now)
        self.abort_slow(self.unread() - self._unread_bytes)
        self._timer = None
        if self._open:
            self._sweep_later(loop)

    def unread(self) -> int:
        """Returns the bytes that clients have not read."""
        return sum(size for _, _, size in self._slow())

    def abort_slow(self, size: int) -> None:
        """Closes the slowest connections, until `size` unread bytes are freed."""
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

    def _check(self, connection: Connection, now: float) -> None:
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
