# ruff: noqa: D102 - the events are documented in asyncio.Protocol
"""One client connection: its state for deadlines (`listener.py`), and functions for its requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from aiohttp import StreamReader, web

MAX_UNAUTHENTICATED = 128
"""Maximum connections without a valid token yet; one more closes the oldest. Clients send the token with
their first request, so idle connections of others cannot use up all connections."""

_EOF_SECONDS = 0.02


def connection_of(request: web.BaseRequest) -> Connection | None:
    """Returns the connection of a request; None for one of another listener."""
    protocol: Any = request.protocol
    return protocol if isinstance(protocol, Connection) else None


def is_connected(request: web.BaseRequest) -> bool:
    """Whether a request's client is connected. One that closed its sending side counts as disconnected."""
    transport = request.transport
    if transport is None or transport.is_closing():
        return False
    protocol: Any = request.protocol
    return not (isinstance(protocol, Connection) and protocol.half_closed)


def served_port(request: web.BaseRequest) -> int | None:
    """Returns the port that a request came to; None when its connection is closed."""
    transport = request.transport
    name = None if transport is None else transport.get_extra_info("sockname")
    return None if name is None else int(name[1])


def connection_store(request: web.BaseRequest) -> dict[str, Any]:
    """Returns the dict whose entries live as long as the request's connection."""
    connection = connection_of(request)
    return {} if connection is None else connection.store


def note_answer(request: web.BaseRequest, size: int) -> None:
    """Records that an answer of `size` bytes is being written; 0 = it is written."""
    connection = connection_of(request)
    if connection is not None:
        connection.answer = size
        if size == 0:
            connection.on_drained()


class Connection(web.RequestHandler):
    """A connection that records since when it makes no progress.

    Attributes:
        answer: bytes of the answer that is being written. All of it stays in memory until the last byte is
            written; no buffer of ours shows the part that the system has taken.
        authenticated: a request had the token.
        body: body of the current request.
        busy: a request is being served.
        half_closed: the client has closed its sending side; it may still read its answer.
        idle_since: when the last request was answered.
        on_drained: called when the client has read something.
        since: when an incomplete head began; None without one.
        store: see `connection_store`.
        unread: (bytes buffered, time of the last change) while the client is not reading.
    """

    __slots__ = (
        "_open",
        "_unauthenticated",
        "answer",
        "authenticated",
        "body",
        "busy",
        "half_closed",
        "idle_since",
        "on_drained",
        "since",
        "store",
        "unread",
    )

    def __init__(
        self,
        server: web.Server,
        open_: set[Connection],
        unauthenticated: dict[Connection, None],
        on_drained: Callable[[], None],
        **options: Any,
    ) -> None:
        super().__init__(server, **options)
        self.on_drained = on_drained
        self.half_closed = False
        self.body: StreamReader | None = None
        self._open = open_
        self._unauthenticated = unauthenticated
        self.idle_since = self._loop.time()
        self.answer = 0
        self.busy = False
        self.authenticated = False
        self.store: dict[str, Any] = {}
        self.since: float | None = None
        self.unread: tuple[int, float] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.since = self._loop.time()
        self._open.add(self)
        if len(self._unauthenticated) >= MAX_UNAUTHENTICATED:
            next(iter(self._unauthenticated)).abort()
        self._unauthenticated[self] = None
        super().connection_made(transport)

    def authenticate(self) -> None:
        """Marks the connection as one whose client has the token."""
        self.authenticated = True
        self._unauthenticated.pop(self, None)

    def abort(self) -> None:
        """Closes the connection to make room for another one."""
        self._unauthenticated.pop(self, None)
        if self.transport is not None:
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        if data and not self.busy and self.since is None:  # aiohttp calls it with nothing to go on parsing
            self.since = self._loop.time()
        super().data_received(data)

    def is_idle(self) -> bool:
        """Whether no request is being received or served."""
        return not self.busy and self.since is None

    def head_is_complete(self, request: web.BaseRequest) -> None:
        """Suspends the deadline until `request_is_done`."""
        self.since, self.busy, self.body = None, True, request.content

    def request_is_done(self, request: web.BaseRequest) -> None:
        """Ends the request; the next byte starts another one."""
        # The rest of a refused body is not a head; aiohttp reads it and closes the connection.
        self.busy, self.body = not request.content.is_eof(), None
        self.idle_since = self._loop.time()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._open.discard(self)
        self._unauthenticated.pop(self, None)
        super().connection_lost(exc)
        self.on_drained()

    def eof_received(self) -> bool:  # type: ignore[override]
        # The last request may have come together with the end, and may not have reached its handler.
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
        self.on_drained()
