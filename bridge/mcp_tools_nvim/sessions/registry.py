"""All sessions in memory: found or revived by id, closed when idle or when room is needed."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ..values import MAX_CLIENT_NAME, Scope, View
from .session import ENDS_WITH_STREAM, Session, SessionInfo, Transport, Watcher
from .store import MAX_AGE_SECONDS, SavedSession, SessionStore, new_key
from .streams import EventIds

if TYPE_CHECKING:
    from ..calls.runner import Calls
    from ..mcp.kernel import Kernel
    from ..values import Limits

IDLE_SECONDS = 30 * 60.0
"""A session idle for longer is dropped from memory; its id revives it."""

MAX_ENDED_BYTES = 64 * 1024 * 1024
"""Maximum bytes of ended streams of all sessions; above it the oldest are dropped."""

RESUME_SECONDS = 5.0
"""Seconds for a disconnected client to resume a stream; later it may be dropped to make room."""

TICK_SECONDS = 1.0
"""Interval of the checks for idle sessions and dead connections."""

AGENT_SHARE = 4
"""One agent gets at most 1/AGENT_SHARE of all sessions, so that one that keeps reconnecting does not
lock other clients out."""

MISSED_NOTIFICATIONS = (
    "notifications/tools/list_changed",
    "notifications/resources/list_changed",
    "notifications/prompts/list_changed",
)
"""Sent after a session is revived: its client may have missed them."""


class FullError(Exception):
    """All sessions are in use; none can be dropped."""


class Sessions:
    """All sessions in memory.

    Args:
        calls: runs the calls of the sessions.
        store: saves sessions.
        events: makes event ids.
        limits: maximum sessions, and how long a client may be disconnected.
        report: called with the whole list after every change.
        idle_seconds: seconds after which an idle session is dropped.

    Attributes:
        watcher: follows the sessions of terminal agents.
    """

    def __init__(
        self,
        calls: Calls,
        store: SessionStore,
        events: EventIds,
        limits: Limits,
        report: Callable[[list[SessionInfo]], None],
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        self._calls = calls
        self._store = store
        self._events = events
        self._limit = limits.sessions
        self._grace = limits.orphan_grace / 1000
        self._idle = idle_seconds
        self._report = report
        self.watcher: Watcher | None = None
        self._reported: list[SessionInfo] = []
        self._by_id: dict[str, Session] = {}
        calls.backpressure.watch(self._held_bytes, self._free)
        self._timer: asyncio.TimerHandle | None = None
        self._closing: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._by_id)

    def infos(self) -> list[SessionInfo]:
        """Returns the clients that are present (see `Session.is_present`), for the dashboard."""
        now = time.monotonic()
        sessions = self._by_id.values()
        return [session.info for session in sessions if session.info is not None and session.is_present(now)]

    def create(
        self, kernel: Kernel, transport: Transport, scope: Scope | None = None, holder: str | None = None
    ) -> Session:
        """Creates a session that is not initialized yet. `save` gives it the id for the client.

        Raises:
            FullError: there is no room.
        """
        self._make_room(None if scope is None else scope.agent)
        ids = self._events if transport == "http" else None
        session = Session(kernel, self._calls, new_key(), transport, ids, scope, self.watcher, holder)
        self._add(session)
        return session

    def save(self, session: Session) -> str:
        """Saves an initialized session, and returns its id for the client.

        Raises:
            TooMuchError: the client declares too much.
        """
        (client, capabilities), version = session.peer.identity, session.peer.version
        id_ = self._store.save(session.key, version, client, capabilities, session.scope, session.holder)
        del self._by_id[session.id]
        session.id, session.created = id_, self._store.now()
        self._by_id[id_] = session
        self.identify(session)
        return id_

    def identify(self, session: Session) -> None:
        """Records the client's name and version, once it has declared them."""
        client, _ = session.peer.identity
        if session.info is not None or not client or self._by_id.get(session.id) is not session:
            return
        # Cut, since Neovim gets them with every change.
        name, version = (str(client.get(part, ""))[:MAX_CLIENT_NAME] for part in ("name", "version"))
        session.info = SessionInfo(name, version, session.transport, session.key, session.holder or "")
        self._report_changes()

    def find(
        self, kernel: Kernel, id_: str, agent: str | None = None, holder: str | None = None
    ) -> Session | None:
        """Returns the session with this id, reviving it if needed; None when the id is not valid.

        Args:
            kernel: serves a revived session.
            id_: the id from the client.
            agent: agent whose endpoint got the request; a session is valid only at the same endpoint.
            holder: digest of the client's own token; a session is valid only with the same token.

        Raises:
            FullError: it can be revived, but there is no room.
        """
        session = self._by_id.get(id_)
        if session is not None and session.created is not None:
            if self._store.now() - session.created > MAX_AGE_SECONDS:
                self.drop(session)
                return None
            return session if (session.agent, session.holder) == (agent, holder) else None
        saved = self._store.read(id_)
        if saved is None or (saved.agent, saved.holder) != (agent, holder):
            return None
        return self._revive(kernel, id_, saved)

    def find_with_question(self, id_: str) -> Session | None:
        """Returns the session with this id, if its client has an unanswered question."""
        session = self._by_id.get(id_)
        return session if session is not None and session.questions.are_open else None

    def find_sse(self, id_: str) -> Session | None:
        """Returns the session over legacy SSE with this id."""
        session = self._by_id.get(id_)
        return session if session is not None and session.transport == "sse" else None

    def of_agent(self, agent: str) -> list[Session]:
        """Returns the sessions of a terminal agent."""
        return [session for session in self._by_id.values() if session.agent == agent]

    def disconnect_agents(self) -> None:
        """Disconnects all terminal agents, without answering their requests."""
        for session in self._by_id.values():
            if session.agent is not None:
                session.streams.hang_up()

    def delete(self, id_: str, agent: str | None = None, holder: str | None = None) -> bool:
        """Permanently ends a session, in memory or not; False when the id is not valid."""
        session = self._by_id.get(id_)
        known = session if session is not None and session.created is not None else self._store.read(id_)
        if known is None or (known.agent, known.holder) != (agent, holder):
            return False
        self._store.delete(id_)
        if session is not None:
            self.drop(session)
        return True

    def delete_of_token(self, holder: str) -> None:
        """Permanently ends the sessions of a revoked token; saved ones are invalid without the token."""
        for session in list(self._by_id.values()):
            if session.holder == holder:
                self._store.delete(session.id)
                self.drop(session)

    def drop(self, session: Session, reason: str = "session_closed") -> None:
        """Removes a session from memory; a saved one can be revived."""
        if self._by_id.get(session.id) is session:
            del self._by_id[session.id]
            closing = asyncio.get_running_loop().create_task(session.close(reason))
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)
            self._report_changes()

    def broadcast(self, method: str, concerned: Callable[[View], bool] | None = None) -> None:
        """Sends a notification without parameters to every client, or to those that it concerns.

        Terminal agents get none: their tools never change.
        """
        for session in self._by_id.values():
            if session.agent is None and (concerned is None or concerned(session.view)):
                session.notify(method)

    def tasks(self) -> set[asyncio.Task[Any]]:
        """Returns the tasks of all requests in flight."""
        return {task for session in self._by_id.values() for task in session.tasks()}

    async def close(self, reason: str) -> None:
        """Ends all sessions and waits until they are closed."""
        for session in list(self._by_id.values()):
            self.drop(session, reason)
        if self._closing:
            await asyncio.wait(set(self._closing))
        if self._timer is not None:
            self._timer.cancel()

    def _revive(self, kernel: Kernel, id_: str, saved: SavedSession) -> Session | None:
        self._make_room(saved.agent)
        session = Session(
            kernel, self._calls, saved.key, "http", self._events, saved.scope, self.watcher, saved.holder
        )
        try:
            session.peer.revive(saved.version, saved.client, saved.capabilities)
        except ValueError:
            return None  # saved by another release of the bridge; this one cannot serve the client
        session.id, session.created = id_, saved.created
        for method in () if session.agent is not None else MISSED_NOTIFICATIONS:
            session.notify(method)
        self._add(session)
        self.identify(session)
        return session

    def _add(self, session: Session) -> None:
        self._by_id[session.id] = session
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(TICK_SECONDS, self._tick)

    def _make_room(self, agent: str | None) -> None:
        share = max(self._limit // AGENT_SHARE, 1)
        while agent is not None and len(own := self.of_agent(agent)) >= share:
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
            self._check(session, now)
        self._drop_ended_streams(self._ended_bytes() - MAX_ENDED_BYTES, math.inf)
        self._calls.backpressure.notify_freed()
        if self.infos() != self._reported:
            self._report_changes()
        self._timer = None
        if self._by_id:
            self._timer = asyncio.get_running_loop().call_later(TICK_SECONDS, self._tick)

    def _report_changes(self) -> None:
        self._reported = self.infos()
        self._report(self._reported)

    def _ended_bytes(self) -> int:
        return sum(session.streams.ended_bytes for session in self._by_id.values())

    def _held_bytes(self) -> int:
        return sum(session.streams.held_bytes for session in self._by_id.values())

    def _free(self, size: int) -> None:
        """Drops ended streams that were not resumed in time, until `size` bytes are free."""
        self._drop_ended_streams(size, time.monotonic() - RESUME_SECONDS)

    def _drop_ended_streams(self, size: int, until: float) -> None:
        streams = [session.streams for session in self._by_id.values()]
        while size > 0:
            oldest = min(streams, key=lambda each: each.ended_at, default=None)
            if oldest is None or oldest.ended_at >= until:
                return  # infinite if no stream is left
            before = oldest.ended_bytes
            oldest.drop_oldest()
            size -= before - oldest.ended_bytes

    def _check(self, session: Session, now: float) -> None:
        connected = session.connected
        session.streams.tidy(now)
        session.notify_watcher()
        if connected:
            session.last_heard = now
        elif session.transport in ENDS_WITH_STREAM:
            self.drop(session, "disconnected")
        elif session.calls and now - session.last_heard > self._grace:
            session.cancel_all("client_gone")
        elif session.disposable and now - session.last_heard > self._idle:
            self.drop(session)
