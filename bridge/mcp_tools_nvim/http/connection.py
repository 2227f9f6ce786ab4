# ruff: noqa: D102 - the events are documented in asyncio.Protocol
"""One connection of a client: what is noted of it, and what a request may ask of the one that it came by.

Receives: bytes and events of a transport. Sends: them to aiohttp's protocol.
Does not know about: deadlines (listener.py), what is requested.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

from aiohttp import StreamReader, web

STRANGERS = 128
"""Connections that have not shown the token yet; the oldest gives way to one more. A client shows it with its
first request: the others only hold connections open, and must not use up all that there are."""

_EOF_SECONDS = 0.02


def head_is_complete(request: web.Request) -> Connection | None:
    """Its deadline is met; until `request_is_done` the connection has none."""
    protocol = request.transport.get_protocol() if request.transport is not None else None
    if not isinstance(protocol, Connection):
        return None
    protocol.since, protocol.busy, protocol.body = None, True, request.content
    return protocol


def note_token_shown(connection: Connection | None) -> None:
    """A request that came by it has shown the token."""
    if connection is not None:
        connection.become_known()


def is_connected(request: web.Request) -> bool:
    """Does the connection that a request came by stand? A client that closed its side is as good as gone."""
    transport = request.transport
    if transport is None or transport.is_closing():
        return False
    protocol = transport.get_protocol()
    return not (isinstance(protocol, Connection) and protocol.half_closed)


def served_port(request: web.Request) -> int | None:
    """The port that a request came to, also while two are served; None = its connection is gone."""
    transport = request.transport
    name = None if transport is None else transport.get_extra_info("sockname")
    return None if name is None else int(name[1])


def scope_of(request: web.Request) -> dict[str, Any]:
    """A place to keep things as long as the request's connection stands."""
    protocol = request.transport.get_protocol() if request.transport is not None else None
    return protocol.scope if isinstance(protocol, Connection) else {}


def note_answer(request: web.Request | web.BaseRequest, size: int) -> None:
    """An answer of `size` bytes waits for its client to read; 0 = no longer."""
    protocol = request.transport.get_protocol() if request.transport is not None else None
    if isinstance(protocol, Connection):
        protocol.answer = size
        if size == 0:
            protocol.let_go()


def request_is_done(request: web.Request, connection: Connection | None) -> None:
    """With its next byte the connection's next request begins."""
    if connection is not None:
        # What is left of a refused body is no head; aiohttp reads it and ends the connection by itself.
        connection.busy, connection.body = not request.content.is_eof(), None
        connection.rest()


class Connection(asyncio.Protocol):
    """Stands between the transport and aiohttp's protocol, and notes since when something is not getting on.

    Attributes:
        answer: bytes of the answer that is being written. It stays in memory as a whole until the last of
            them is, and of a large one the system has taken a good part, which no buffer of ours shows.
        busy: a request is being worked on.
        body: of that request.
        let_go: to be called when less waits for the client than before.
        half_closed: the client sends no more; most are gone then, but one may still read its answer.
        idle_since: when its last request was answered; for the listener.
        scope: see `scope_of`.
        since: when an incomplete head began; None without one.
        unread: while the client reads slowly, how much waited for it at what time, when last that changed.
    """

    __slots__ = (
        "_inner",
        "_loop",
        "_open",
        "_strangers",
        "answer",
        "body",
        "busy",
        "half_closed",
        "idle_since",
        "let_go",
        "scope",
        "since",
        "transport",
        "unread",
    )

    def __init__(
        self,
        inner: Any,
        open_: set[Connection],
        strangers: dict[Connection, None],
        loop: asyncio.AbstractEventLoop,
        let_go: Callable[[], None],
    ) -> None:
        self._inner = inner
        self.let_go = let_go
        self.half_closed = False
        self.body: StreamReader | None = None
        self._open = open_
        self._strangers = strangers
        self._loop = loop
        self.idle_since = loop.time()
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

    def is_idle(self) -> bool:
        """Whether no request is on its way, nor being answered."""
        return not self.busy and self.since is None

    def rest(self) -> None:
        """A request was answered."""
        self.idle_since = self._loop.time()

    def connection_lost(self, exc: Exception | None) -> None:
        self._open.discard(self)
        self._strangers.pop(self, None)
        self._inner.connection_lost(exc)
        self.let_go()

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
        self.let_go()
