# ruff: noqa: D102 - the events are documented in asyncio.Protocol
"""Serves sockets, and closes connections that make no progress; aiohttp would wait for them."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from aiohttp import StreamReader, web
from aiohttp.http import HttpProcessingError

from ..calls.backpressure import Backpressure

if TYPE_CHECKING:
    from .app import Application

MAX_UNAUTHENTICATED = 128
"""Maximum connections that have not sent a valid token; one more closes the oldest. So processes without
the token cannot use up all connections."""

_EOF_SECONDS = 0.02


def connection_of(request: web.BaseRequest) -> Connection:
    """Returns the connection of a request."""
    protocol: Any = request.protocol
    connection: Connection = protocol
    return connection


def is_connected(request: web.BaseRequest) -> bool:
    """Whether a request's client is connected; False after it has closed its sending side."""
    transport = request.transport
    return transport is not None and not transport.is_closing() and not connection_of(request).half_closed


def served_port(request: web.BaseRequest) -> int | None:
    """Returns the port that a request came to; None when its connection is closed."""
    transport = request.transport
    name = None if transport is None else transport.get_extra_info("sockname")
    return None if name is None else int(name[1])


class Connection(web.RequestHandler):
    """A connection that records since when it makes no progress.

    Attributes:
        answer: bytes of the answer that is being written. All of it stays in memory until the last byte is
            written, though the transport's buffer shrinks.
        body: body of the current request.
        busy: a request is being served.
        half_closed: the client has closed its sending side; it may still read its answer.
        idle_since: when the last request was answered.
        head_since: when the first byte of an incomplete request head came; None without one.
        store: dict for data that lives as long as the connection.
        unread: bytes buffered, and time of the last change; None while the client reads.
    """

    answer = 0
    body: StreamReader | None = None
    busy = False
    half_closed = False
    head_since: float | None = None
    unread: tuple[int, float] | None = None

    def __init__(self, server: web.Server, deadlines: _Deadlines, **options: Any) -> None:
        super().__init__(server, **options)
        self._deadlines = deadlines
        self.idle_since = self._loop.time()
        self.store: dict[str, Any] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.head_since = self._loop.time()
        self._deadlines.open.add(self)
        unauthenticated = self._deadlines.unauthenticated
        if len(unauthenticated) >= MAX_UNAUTHENTICATED:
            next(iter(unauthenticated)).abort()
        unauthenticated[self] = None
        super().connection_made(transport)

    def authenticate(self) -> None:
        """Marks the connection as one whose client has the token."""
        self._deadlines.unauthenticated.pop(self, None)

    def abort(self) -> None:
        """Closes the connection to make room for another one."""
        self.authenticate()
        if self.transport is not None:
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        if data and not self.busy and self.head_since is None:  # aiohttp passes b"" to continue parsing
            self.head_since = self._loop.time()
        super().data_received(data)

    def is_idle(self) -> bool:
        """Whether no request is being received or served."""
        return not self.busy and self.head_since is None

    def on_head_complete(self, request: web.BaseRequest) -> None:
        """Suspends the deadline until `on_request_done`."""
        self.head_since, self.busy, self.body = None, True, request.content

    def on_request_done(self, request: web.BaseRequest) -> None:
        """Ends the request; the next byte starts another one."""
        # aiohttp still reads the rest of a refused body before it closes the connection.
        self.busy, self.body = not request.content.is_eof(), None
        self.idle_since = self._loop.time()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._deadlines.open.discard(self)
        self.authenticate()
        super().connection_lost(exc)
        self._deadlines.on_drained()

    def eof_received(self) -> bool:  # type: ignore[override]
        # A request that arrived just before the EOF may not have reached its handler.
        self.half_closed = True
        self._loop.call_later(_EOF_SECONDS, self._end_unless_answering)
        return True

    def _end_unless_answering(self) -> None:
        if self.transport is None or self.transport.is_closing():
            return
        if self.busy and self.body is not None and self.body.is_eof():
            self.close()  # aiohttp closes the connection after the current answer
        else:
            self.transport.close()

    def pause_writing(self) -> None:
        self.unread = (0, self._loop.time())
        super().pause_writing()

    def resume_writing(self) -> None:
        self.unread = None
        super().resume_writing()
        self._deadlines.on_drained()

    def note_answer(self, size: int) -> None:
        """Records that an answer of `size` bytes is being written; 0 = it is written."""
        self.answer = size
        if size == 0:
            self._deadlines.on_drained()


HEAD_SECONDS = 10.0
"""Maximum time for the head of a request, from its first byte; for the first request, from the connection."""

KEEP_ALIVE_SECONDS = 75.0
"""Idle time after which a connection is closed; longer than any known client keeps one."""

READ_SECONDS = 30.0
"""A connection whose client reads nothing for this time is closed; an event stream can be resumed."""

UNREAD_SECONDS = 1.0
"""Used instead of `READ_SECONDS` while unread bytes exceed `MAX_UNREAD_BYTES` or calls wait for memory."""

MAX_UNREAD_BYTES = 64 * 1024 * 1024
"""Maximum unread bytes of all clients; above it, connections are closed, the slowest first."""

SHUTDOWN_SECONDS = 1.0
"""Time for handlers to end at shutdown, after their calls were cancelled."""

logger = logging.getLogger(__name__)
logger.addFilter(lambda record: not _is_client_fault(record))

_SWEEP_SECONDS = 0.5
_NEVER = 365 * 86400.0
_TIMEOUT = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class Runner(web.ServerRunner):
    """Serves an application, with deadlines for its connections.

    Args:
        app: the application.
        head_seconds: see `HEAD_SECONDS`.
        read_seconds: see `READ_SECONDS`.
        backpressure: counts unread bytes.
        keep_alive_seconds: see `KEEP_ALIVE_SECONDS`.
    """

    def __init__(
        self,
        app: Application,
        head_seconds: float = HEAD_SECONDS,
        read_seconds: float = READ_SECONDS,
        backpressure: Backpressure | None = None,
        keep_alive_seconds: float = KEEP_ALIVE_SECONDS,
    ) -> None:
        loop = asyncio.get_running_loop()
        make_request: Any = partial(web.Request, loop=loop, client_max_size=app.body_limit)
        handle: Any = app.handle  # takes `web.Request`, which `make_request` returns
        server = web.Server(
            handle,
            request_factory=make_request,
            handler_cancellation=False,  # a lost connection does not cancel a call of a session
        )
        super().__init__(server, shutdown_timeout=SHUTDOWN_SECONDS)
        self._app = app
        on_drained = backpressure.notify_freed if backpressure is not None else lambda: None
        self._deadlines = _Deadlines(head_seconds, read_seconds, on_drained, keep_alive_seconds)
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
        """Makes pending requests end."""
        await self._app.close()

    async def cleanup(self) -> None:
        """Closes everything that was set up."""
        self._deadlines.stop()
        await super().cleanup()


def _is_client_fault(record: logging.LogRecord) -> bool:
    """Whether a log record is about a client's invalid request, which was answered and need not be logged."""
    expected = (HttpProcessingError, web.RequestPayloadError)
    return record.exc_info is not None and isinstance(record.exc_info[1], expected)


class _Deadlines:
    """Checks all connections twice a second, which is cheaper than a timer per request.

    Attributes:
        on_drained: called when fewer bytes are unread.
        open: all connections.
        unauthenticated: connections without a valid token yet, the oldest first.
    """

    def __init__(
        self,
        head_seconds: float,
        read_seconds: float,
        on_drained: Callable[[], None],
        keep_alive_seconds: float,
    ) -> None:
        self.on_drained = on_drained
        self._head = head_seconds
        self._keep_alive = keep_alive_seconds
        self._read = read_seconds
        self._pause = min(_SWEEP_SECONDS, head_seconds / 4, read_seconds / 4)
        self.open: set[Connection] = set()
        self.unauthenticated: dict[Connection, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def connect(self, server: web.Server) -> Connection:
        loop = asyncio.get_running_loop()
        if self._timer is None:
            self._sweep_later(loop)
        return Connection(
            server,
            self,
            loop=loop,
            access_log=None,
            keepalive_timeout=_NEVER,  # `_check` closes idle connections
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
        for connection in list(self.open):
            self._check(connection, now)
        self.abort_slow(self.unread() - MAX_UNREAD_BYTES)
        self._timer = None
        if self.open:
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
            for each in self.open
            if each.unread is not None and each.transport is not None
        ]

    def _check(self, connection: Connection, now: float) -> None:
        transport = connection.transport
        if transport is None:
            return
        if connection.head_since is not None and now - connection.head_since > self._head:
            connection.head_since = None
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
