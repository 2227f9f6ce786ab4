"""The sessions in memory: found by id, revived, closed when idle or in the way."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ..values import Scope, View
from .ids import Sealed, SessionIds, new_key
from .outbox import EventIds
from .session import ENDS_WITH_STREAM, Session, SessionInfo, Transport, Watcher

if TYPE_CHECKING:
    from ..calls.runner import Calls
    from ..mcp.kernel import Kernel
    from ..values import Limits

IDLE_SECONDS = 30 * 60.0
"""Longer than a coffee break; a session that returns later is revived by its id."""

KEPT_BYTES = 64 * 1024 * 1024
"""What ended streams of all sessions together hold; beyond that the oldest are forgotten."""

ASKED_FOR_WITHIN = 5.0
"""Seconds in which a client that lost its connection comes back for the rest of a stream. After that it is
kept only while nobody needs the room."""

TICK_SECONDS = 1.0
"""How often sessions are looked after, while there are any."""

COMPANION_SHARE = 4
"""The agents of one companion have at most one in so many of all sessions: one that comes again and again
without an end keeps nobody else out."""

LISTS = (
    "notifications/tools/list_changed",
    "notifications/resources/list_changed",
    "notifications/prompts/list_changed",
)
"""What a revived client may have missed."""


class FullError(Exception):
    """All sessions are in use; none can give way."""


class Sessions:
    """See the head of this file.

    Args:
        calls: for the sessions.
        ids: seals and opens session ids.
        events: event ids of this process.
        limits: how many, and how long a client may be gone.
        report: hears of every change, with the whole list.
        idle_seconds: see `IDLE_SECONDS`.
        watcher: hears of the sessions of companions.
    """

    def __init__(
        self,
        calls: Calls,
        ids: SessionIds,
        events: EventIds,
        limits: Limits,
        report: Callable[[list[SessionInfo]], None],
        idle_seconds: float = IDLE_SECONDS,
        watcher: Watcher | None = None,
    ) -> None:
        self._calls = calls
        self._ids = ids
        self._events = events
        self._limit = limits.sessions
        self._grace = limits.orphan_grace / 1000
        self._idle = idle_seconds
        self._report = report
        self._watcher = watcher
        self._reported: list[SessionInfo] = []
        self._by_id: dict[str, Session] = {}
        calls.backpressure.watch(self._held, self._ease)
        self._timer: asyncio.TimerHandle | None = None
        self._closing: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._by_id)

    def infos(self) -> list[SessionInfo]:
        """The clients that are there, as the dashboard shows them; the session of one that left may stay."""
        now = time.monotonic()
        sessions = self._by_id.values()
        return [session.info for session in sessions if session.info is not None and session.is_there(now)]

    def create(self, kernel: Kernel, transport: Transport, scope: Scope | None = None) -> Session:
        """A session that is not initialized yet, and its `scope`. Until `seal` its id is known to nobody.

        Raises:
            FullError: there is no room.
        """
        self._make_room(None if scope is None else scope.companion)
        ids = self._events if transport == "http" else None
        session = Session(kernel, self._calls, new_key(), transport, ids, scope, self._watcher)
        self._add(session)
        return session

    def seal(self, session: Session) -> str:
        """Gives an initialized session the id that the client gets.

        Raises:
            TooMuchError: the client declares more than an id can hold.
        """
        client, capabilities = session.peer.identity
        id_ = self._ids.seal(session.key, session.peer.version, client, capabilities, session.scope)
        del self._by_id[session.id]
        session.id, session.sealed_at = id_, int(self._ids.now())
        self._by_id[id_] = session
        self.identify(session)
        return id_

    def identify(self, session: Session) -> None:
        """Takes down who the client says it is, as soon as it has."""
        client, _ = session.peer.identity
        if session.info is not None or not client or self._by_id.get(session.id) is not session:
            return
        session.info = SessionInfo(
            str(client.get("name", "")), str(client.get("version", "")), session.transport
        )
        self._tell()

    def find(self, kernel: Kernel, id_: str, companion: str | None = None) -> Session | None:
        """The session that was sealed as this id, revived if need be; None when there is none or no longer.

        Args:
            kernel: serves it.
            id_: as the client sends it.
            companion: to whose endpoint the request came; sessions are not carried through another.

        Raises:
            FullError: it can be revived, but there is no room.
        """
        session = self._by_id.get(id_)
        if session is not None and session.sealed_at is not None:
            if self._ids.expired(session.sealed_at):
                self.drop(session)
                return None
            return session if session.companion == companion else None
        sealed = self._ids.open(id_)
        if sealed is None or _companion_of(sealed) != companion:
            return None
        return self._revive(kernel, id_, sealed)

    def find_asked(self, id_: str) -> Session | None:
        """The session with this id, if its client was asked for something and has not answered."""
        session = self._by_id.get(id_)
        return session if session is not None and session.questions.are_open else None

    def find_sse(self, id_: str) -> Session | None:
        """The session over SSE with this id."""
        session = self._by_id.get(id_)
        return session if session is not None and session.transport == "sse" else None

    def of_companion(self, companion: str) -> list[Session]:
        """Its sessions."""
        return [session for session in self._by_id.values() if session.companion == companion]

    def let_companions_go(self) -> None:
        """Ends the connections of all companions' agents, without an answer to what they wait for."""
        for session in self._by_id.values():
            if session.companion is not None:
                session.streams.hang_up()

    def delete(self, id_: str, companion: str | None = None) -> bool:
        """Ends a session for good, also one that is not in memory; False when there is none."""
        sealed = self._ids.open(id_)
        if sealed is None or _companion_of(sealed) != companion:
            return False
        self._ids.bury(sealed)
        session = self._by_id.get(id_)
        if session is not None:
            self.drop(session)
        return True

    def drop(self, session: Session, reason: str = "session_closed") -> None:
        """Frees a session's memory; a sealed one may return by its id."""
        if self._by_id.get(session.id) is session:
            del self._by_id[session.id]
            closing = asyncio.get_running_loop().create_task(session.close(reason))
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)
            self._tell()

    def broadcast(self, method: str, concerned: Callable[[View], bool] | None = None) -> None:
        """Sends a notification without parameters to every client, or to those whom it concerns.

        Not to agents of companions: what they are offered stays as it is.
        """
        for session in self._by_id.values():
            if session.companion is None and (concerned is None or concerned(session.view)):
                session.notify(method)

    def tasks(self) -> set[asyncio.Task[Any]]:
        """The tasks of all requests in flight."""
        return {task for session in self._by_id.values() for task in session.tasks()}

    async def close(self, reason: str) -> None:
        """Ends all sessions and waits until they have."""
        for session in list(self._by_id.values()):
            self.drop(session, reason)
        if self._closing:
            await asyncio.wait(set(self._closing))
        if self._timer is not None:
            self._timer.cancel()

    def _revive(self, kernel: Kernel, id_: str, sealed: Sealed) -> Session | None:
        self._make_room(_companion_of(sealed))
        session = Session(kernel, self._calls, sealed.key, "http", self._events, sealed.scope, self._watcher)
        try:
            session.peer.revive(sealed.version, sealed.client, sealed.capabilities)
        except ValueError:
            return None  # sealed by another release of the bridge, for a client that this one cannot serve
        session.id, session.sealed_at = id_, sealed.sealed_at
        for method in () if session.companion is not None else LISTS:
            session.notify(method)
        self._add(session)
        self.identify(session)
        return session

    def _add(self, session: Session) -> None:
        self._by_id[session.id] = session
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(TICK_SECONDS, self._tick)

    def _make_room(self, companion: str | None) -> None:
        share = max(self._limit // COMPANION_SHARE, 1)
        while companion is not None and len(own := self.of_companion(companion)) >= share:
            self._drop_one(own)
        while len(self._by_id) >= self._limit:
            self._drop_one(self._by_id.values())

    def _drop_one(self, sessions: Iterable[Session]) -> None:
        disposable = [session for session in sessions if session.disposable]
        if not disposable:
            raise FullError
        self.drop(min(disposable, key=lambda session: session.last_heard))

    def _tick(self) -> None:
        now = time.monotonic()
        for session in list(self._by_id.values()):
            self._look_after(session, now)
        self._bound_kept()
        self._calls.backpressure.let_go()
        if self.infos() != self._reported:
            self._tell()
        self._timer = None
        if self._by_id:
            self._timer = asyncio.get_running_loop().call_later(TICK_SECONDS, self._tick)

    def _tell(self) -> None:
        self._reported = self.infos()
        self._report(self._reported)

    def _bound_kept(self) -> None:
        total = sum(session.streams.kept_bytes for session in self._by_id.values())
        self._forget_kept(total - KEPT_BYTES, math.inf)

    def _held(self) -> int:
        return sum(session.streams.held_bytes for session in self._by_id.values())

    def _ease(self, size: int) -> None:
        """There is no room for more answers: ended streams that nobody came back for give way."""
        self._forget_kept(size, time.monotonic() - ASKED_FOR_WITHIN)

    def _forget_kept(self, size: int, until: float) -> None:
        streams = [session.streams for session in self._by_id.values()]
        while size > 0:
            oldest = min(streams, key=lambda each: each.kept_since, default=None)
            if oldest is None or oldest.kept_since >= until:
                return  # (infinite: it keeps none)
            before = oldest.kept_bytes
            oldest.forget_oldest()
            size -= before - oldest.kept_bytes

    def _look_after(self, session: Session, now: float) -> None:
        connected = session.connected
        session.streams.tidy(now)
        session.look()
        if connected:
            session.last_heard = now
        elif session.transport in ENDS_WITH_STREAM:
            self.drop(session, "disconnected")
        elif session.calls and now - session.last_heard > self._grace:
            session.cancel_all("client_gone")
        elif session.disposable and now - session.last_heard > self._idle:
            self.drop(session)


def _companion_of(sealed: Sealed) -> str | None:
    return None if sealed.scope is None else sealed.scope.companion
