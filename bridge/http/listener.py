"""The listener: connections, and what becomes of those that do not get on (aiohttp would wait for them).

Receives: connections from the listening sockets, and word of each request whose head is complete.
Sends: 408 and the end of the connection. Does not know about: what is requested.
Longer than others: every bound of a connection stands in one place.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from functools import partial
from operator import itemgetter
from typing import Any, Protocol, cast

from aiohttp import StreamReader, web
from aiohttp.http import HttpProcessingError

from ..calls.room import Room

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

STRANGERS = 128
"""Connections that have not shown the token yet; the oldest gives way to one more. A client shows it with its
first request: the others only hold connections open, and must not use up all that there are."""

SHUTDOWN_SECONDS = 1.0
"""What handlers get at the end, after everything that they wait for was told to end."""

logger = logging.getLogger(__name__)
logger.addFilter(lambda record: not _is_of_the_client(record))

_SWEEP_SECONDS, _EOF_SECONDS = 0.5, 0.02
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
    """

    __slots__ = ("_app", "_deadlines")

    def __init__(
        self,
        app: Application,
        head_seconds: float = HEAD_SECONDS,
        read_seconds: float = READ_SECONDS,
        unread_bytes: int = UNREAD_BYTES,
        room: Room | None = None,
    ) -> None:
        loop = asyncio.get_running_loop()
        make_request: Any = partial(web.Request, loop=loop, client_max_size=app.body_limit)
        handle: Any = app.handle  # typed for requests of the class that `make_request` makes
        server = web.Server(
            handle,
            request_factory=make_request,
            handler_cancellation=False,  # a lost connection does not cancel a call of the session era
            access_log=None,
            keepalive_timeout=KEEP_ALIVE_SECONDS,
            lingering_time=2.0,
            logger=logger,
        )
        super().__init__(server, shutdown_timeout=SHUTDOWN_SECONDS)
        self._app = app
        self._deadlines = _Deadlines(head_seconds, read_seconds, unread_bytes)
        if room is not None:
            room.watch(self._deadlines.unread, self._deadlines.ease)

    @property
    def server(self) -> Any:
        """What makes the protocol of a new connection."""
        make = super().server
        return None if make is None else self._deadlines.wrap(make)

    async def setup(self) -> None:
        """Starts the application."""
        await self._app.start()
        await super().setup()

    async def listen(self, listening: socket.socket) -> None:
        """Serves one more socket, which is bound and listens already."""
        await web.SockSite(self, listening).start()

    async def shutdown(self) -> None:
        """Ends what requests wait for."""
        await self._app.close()

    async def cleanup(self) -> None:
        """Ends everything that was set up."""
        self._deadlines.stop()
        await super().cleanup()


def head_is_complete(request: web.Request) -> _Connection | None:
    """Its deadline is met; until `request_is_done` the connection has none."""
    protocol = request.transport.get_protocol() if request.transport is not None else None
    if not isinstance(protocol, _Connection):
        return None
    protocol.since, protocol.busy, protocol.body = None, True, request.content
    return protocol


def note_token_shown(connection: _Connection | None) -> None:
    """A request that came by it has shown the token."""
    if connection is not None:
        connection.become_known()


def is_connected(request: web.Request) -> bool:
    """Does the connection that a request came by stand? A client that closed its side is as good as gone."""
    transport = request.transport
    if transport is None or transport.is_closing():
        return False
    protocol = transport.get_protocol()
    return not (isinstance(protocol, _Connection) and protocol.half_closed)


def served_port(request: web.Request) -> int | None:
    """The port that a request came to, also while two are served; None = its connection is gone."""
    transport = request.transport
    name = None if transport is None else transport.get_extra_info("sockname")
    return None if name is None else int(name[1])


def scope_of(request: web.Request) -> dict[str, Any]:
    """A place to keep things as long as the request's connection stands."""
    protocol = request.transport.get_protocol() if request.transport is not None else None
    return protocol.scope if isinstance(protocol, _Connection) else {}


def note_answer(request: web.Request | web.BaseRequest, size: int) -> None:
    """An answer of `size` bytes waits for its client to read; 0 = no longer."""
    protocol = request.transport.get_protocol() if request.transport is not None else None
    if isinstance(protocol, _Connection):
        protocol.answer = size


def request_is_done(request: web.Request, connection: _Connection | None) -> None:
    """With its next byte the connection's next request begins."""
    if connection is not None:
        # What is left of a refused body is no head; aiohttp reads it and ends the connection by itself.
        connection.busy, connection.body = not request.content.is_eof(), None


def _is_of_the_client(record: logging.LogRecord) -> bool:
    """aiohttp logs a trace for what is no HTTP, and for a body that is not encoded as it says; whoever sent
    it was answered, and it says nothing about us."""
    known = (HttpProcessingError, web.RequestPayloadError)
    return record.exc_info is not None and isinstance(record.exc_info[1], known)


class _Connection(asyncio.Protocol):
    """Stands between the transport and aiohttp's protocol, and notes since when something is not getting on.

    Attributes:
        admitted: head of the last request that no guard refused, and who serves it; for app.py.
        answer: bytes of the answer that is being written. It stays in memory as a whole until the last of
            them is, and of a large one the system has taken a good part, which no buffer of ours shows.
        busy: a request is being worked on.
        body: of that request.
        half_closed: the client sends no more; most are gone then, but one may still read its answer.
        scope: see `scope_of`.
        since: when an incomplete head began; None without one.
        unread: while the client reads slowly, how much waited for it at what time, when last that changed.
    """

    __slots__ = (
        "_inner",
        "_loop",
        "_open",
        "_strangers",
        "admitted",
        "answer",
        "body",
        "busy",
        "half_closed",
        "scope",
        "since",
        "transport",
        "unread",
    )

    def __init__(
        self,
        inner: Any,
        open_: set[_Connection],
        strangers: dict[_Connection, None],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._inner = inner
        self.half_closed = False
        self.body: StreamReader | None = None
        self._open = open_
        self._strangers = strangers
        self._loop = loop
        self.admitted: tuple[object, Callable[[web.Request], Awaitable[web.StreamResponse]]] | None = None
        self.answer = 0
        self.busy = False
        self.scope: dict[str, Any] = {}
        self.since: float | None = None
        self.unread: tuple[int, float] | None = None
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # That of a stream; uvloop's does not inherit from it.
        self.transport, self.since = cast(asyncio.Transport, transport), self._loop.time()
        self._open.add(self)
        if len(self._strangers) >= STRANGERS:
            next(iter(self._strangers)).give_way()
        self._strangers[self] = None
        self._inner.connection_made(transport)

    def become_known(self) -> None:
        """It has shown the token."""
        self._strangers.pop(self, None)

    def give_way(self) -> None:
        """There are too many like it."""
        self._strangers.pop(self, None)
        if self.transport is not None:
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        if not self.busy and self.since is None:
            self.since = self._loop.time()
        self._inner.data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._open.discard(self)
        self._strangers.pop(self, None)
        self._inner.connection_lost(exc)

    def eof_received(self) -> bool:
        # The last request may have come with the end, and be on its way to its handler.
        self.half_closed = True
        self._loop.call_later(_EOF_SECONDS, self._end_unless_answering)
        return True

    def _end_unless_answering(self) -> None:
        if self.transport is None or self.transport.is_closing():
            return
        if self.busy and self.body is not None and self.body.is_eof():
            self._inner.close()  # aiohttp's way to end the connection with the answer that is being made
        else:
            self.transport.close()

    def pause_writing(self) -> None:
        self.unread = (0, self._loop.time())
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self.unread = None
        self._inner.resume_writing()


class _Deadlines:
    """Looks at all connections twice a second: cheaper than a timer for each request."""

    def __init__(self, head_seconds: float, read_seconds: float, unread_bytes: int) -> None:
        self._head = head_seconds
        self._unread_bytes = unread_bytes
        self._read = read_seconds
        self._pause = min(_SWEEP_SECONDS, head_seconds / 4, read_seconds / 4)
        self._open: set[_Connection] = set()
        self._strangers: dict[_Connection, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def wrap(self, make: Callable[[], asyncio.Protocol]) -> Callable[[], asyncio.Protocol]:
        loop = asyncio.get_running_loop()

        def protocol() -> asyncio.Protocol:
            if self._timer is None:
                self._sweep_later(loop)
            return _Connection(make(), self._open, self._strangers, loop)

        return protocol

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

    def _look_at(self, connection: _Connection, now: float) -> None:
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
