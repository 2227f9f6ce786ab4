# ruff: noqa: D102 - the events are documented in asyncio.Protocol
"""One connection of a client: what is noted of it, and what a request may ask of the one that it came by.

Does not know about: deadlines (listener.py), what is requested.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from aiohttp import StreamReader, web

STRANGERS = 128
"""Connections that have not shown the token yet; the oldest gives way to one more. A client shows it with its
first request: the others only hold connections open, and must not use up all that there are."""

_EOF_SECONDS = 0.02


def connection_of(request: web.BaseRequest) -> Connection | None:
    """The connection that a request came by; None for one that this listener does not serve."""
    protocol: Any = request.protocol
    return protocol if isinstance(protocol, Connection) else None


def is_connected(request: web.BaseRequest) -> bool:
    """Does the connection that a request came by stand? A client that closed its side is as good as gone."""
    transport = request.transport
    if transport is None or transport.is_closing():
        return False
    protocol: Any = request.protocol
    return not (isinstance(protocol, Connection) and protocol.half_closed)


def served_port(request: web.BaseRequest) -> int | None:
    """The port that a request came to, also while two are served; None = its connection is gone."""
    transport = request.transport
    name = None if transport is None else transport.get_extra_info("sockname")
    return None if name is None else int(name[1])


def scope_of(request: web.BaseRequest) -> dict[str, Any]:
    """A place to keep things as long as the request's connection stands."""
    connection = connection_of(request)
    return {} if connection is None else connection.scope


def note_answer(request: web.BaseRequest, size: int) -> None:
    """An answer of `size` bytes waits for its client to read; 0 = no longer."""
    connection = connection_of(request)
    if connection is not None:
        connection.answer = size
        if size == 0:
            connection.let_go()


class Connection(web.RequestHandler):
    """Notes since when something is not getting on.

    Attributes:
        answer: bytes of the answer that is being written. It stays in memory as a whole until the last of
            them is, and of a large one the system has taken a good part, which no buffer of ours shows.
        busy: a request is being worked on.
        body: of that request.
        let_go: to be called when less waits for the client than before.
        half_closed: the client sends no more; most are gone then, but one may still read its answer.
        idle_since: when its last request was answered; for the listener.
        known: it has shown the token.
        scope: see `scope_of`.
        since: when an incomplete head began; None without one.
        unread: while the client reads slowly, how much waited for it at what time, when last that changed.
    """

    __slots__ = (
        "_open",
        "_strangers",
        "answer",
        "body",
        "busy",
        "half_closed",
        "idle_since",
        "known",
        "let_go",
        "scope",
        "since",
        "unread",
    )

    def __init__(
        self,
        server: web.Server,
        open_: set[Connection],
        strangers: dict[Connection, None],
        let_go: Callable[[], None],
        **options: Any,
    ) -> None:
        super().__init__(server, **options)
        self.let_go = let_go
        self.half_closed = False
        self.body: StreamReader | None = None
        self._open = open_
        self._strangers = strangers
        self.idle_since = self._loop.time()
        self.answer = 0
        self.busy = False
        self.known = False
        self.scope: dict[str, Any] = {}
        self.since: float | None = None
        self.unread: tuple[int, float] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.since = self._loop.time()
        self._open.add(self)
        if len(self._strangers) >= STRANGERS:
            next(iter(self._strangers)).give_way()
        self._strangers[self] = None
        super().connection_made(transport)

    def become_known(self) -> None:
        """It has shown the token."""
        self.known = True
        self._strangers.pop(self, None)

    def give_way(self) -> None:
        """There are too many like it."""
        self._strangers.pop(self, None)
        if self.transport is not None:
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        if data and not self.busy and self.since is None:  # aiohttp calls it with nothing to go on parsing
            self.since = self._loop.time()
        super().data_received(data)

    def is_idle(self) -> bool:
        """Whether no request is on its way, nor being answered."""
        return not self.busy and self.since is None

    def head_is_complete(self, request: web.BaseRequest) -> None:
        """Its deadline is met; until `request_is_done` the connection has none."""
        self.since, self.busy, self.body = None, True, request.content

    def request_is_done(self, request: web.BaseRequest) -> None:
        """With its next byte the connection's next request begins."""
        # What is left of a refused body is no head; aiohttp reads it and ends the connection by itself.
        self.busy, self.body = not request.content.is_eof(), None
        self.idle_since = self._loop.time()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._open.discard(self)
        self._strangers.pop(self, None)
        super().connection_lost(exc)
        self.let_go()

    def eof_received(self) -> bool:  # type: ignore[override]
        # The last request may have come with the end, and be on its way to its handler.
        self.half_closed = True
        self._loop.call_later(_EOF_SECONDS, self._end_unless_answering)
        return True

    def _end_unless_answering(self) -> None:
        if self.transport is None or self.transport.is_closing():
            return
        if self.busy and self.body is not None and self.body.is_eof():
            self.close()  # aiohttp's way to end the connection with the answer that is being made
        else:
            self.transport.close()

    def pause_writing(self) -> None:
        self.unread = (0, self._loop.time())
        super().pause_writing()

    def resume_writing(self) -> None:
        self.unread = None
        super().resume_writing()
        self.let_go()
