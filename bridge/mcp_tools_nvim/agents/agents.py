"""Agents that find the editor themselves: their endpoints, and the events of their sessions."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from .. import jsonrpc
from ..neovim import Editor
from ..rate_limit import TokenBucket
from ..sessions.registry import Sessions
from ..sessions.session import MAX_NOTICE, Session
from ..values import Endpoint
from .registrations import Registrations
from .router import CompanionRouter, Endpoints
from .unix import UnixSockets

if TYPE_CHECKING:
    from ..http.app import App
    from ..http.endpoints import Front

FLUSH_SECONDS = 0.05
"""For the agents to read what the editor told them last, such as the rejection of a proposal."""

NOTICES_PER_SECOND, NOTICES_AT_ONCE = 20, 100
"""Of one agent: they cost the editor's main thread time, and nobody waits for an answer to them."""

logger = logging.getLogger(__name__)


class Companions:
    """Opens the endpoints of agents, and follows what the editor says of them.

    Args:
        editor: has the companions.
        endpoints: as `hello` told them.
        hide: is told of each token, which is to be in no log.
    """

    def __init__(self, editor: Editor, endpoints: tuple[Endpoint, ...], hide: Callable[[str], None]) -> None:
        self._editor = editor
        self._wanted = endpoints
        self._hide = hide
        self.endpoints = Endpoints()
        self.session_events = SessionEvents(editor)
        self._registrations = Registrations(editor, hide)
        self._front: Front | None = None
        self._router: CompanionRouter | None = None
        self._sockets: UnixSockets | None = None
        self._work: asyncio.Task[None] | None = None
        self._again = False
        editor.on_endpoints(self._changed)

    def join(self, app: App) -> None:
        """Serves beside the application, at its port."""
        self._front = app.front
        self.session_events.of(app.front.sessions)
        self._registrations.of(app.front.sessions)
        router = self._router = CompanionRouter(
            app.front, self.endpoints, self._registrations, app.body_limit
        )
        self._sockets = UnixSockets(router.welcomes, app.body_limit)
        app.guests = router

    async def open(self) -> None:
        """Opens the endpoints that are wanted now, and says which are open."""
        while True:
            self._again = False
            await self._open(self._wanted)
            if not self._again:
                return

    async def let_go(self) -> None:
        """Ends what agents read, at the end of the bridge; what they wait for gets no answer.

        The person can then decide in the terminal of the agent, which takes a cancelled proposal for a no. An
        agent comes back within milliseconds: nothing may welcome it any more, or it goes on believing that it
        is connected.
        """
        if self._work is not None:
            self._work.cancel()
        await self._registrations.close()
        if self._router is not None:
            self._router.ends = True
        if self._sockets is not None:
            await self._sockets.stop_listening()
        if self._front is not None:
            if any(self._front.sessions.of_companion(endpoint.name) for endpoint in self.endpoints):
                await asyncio.sleep(FLUSH_SECONDS)
            self._front.sessions.let_companions_go()

    async def close(self) -> None:
        """Closes the sockets; what is at the port ends with it."""
        if self._work is not None:
            self._work.cancel()
        if self._sockets is not None:
            await self._sockets.close()

    def _changed(self, endpoints: tuple[Endpoint, ...]) -> None:
        if self._router is not None and self._router.ends:
            return
        self._wanted, self._again = endpoints, True
        if self._front is not None and (self._work is None or self._work.done()):
            self._work = asyncio.get_running_loop().create_task(self.open())

    async def _open(self, endpoints: tuple[Endpoint, ...]) -> None:
        front, sockets = self._front, self._sockets
        if front is None or sockets is None:
            return
        for endpoint in endpoints:
            self._hide(endpoint.token)
        known = set(self.endpoints)
        self.endpoints.set(endpoints)
        for gone in known - set(endpoints):
            for session in front.sessions.of_companion(gone.name):
                front.sessions.drop(session)
        await sockets.keep({endpoint.socket for endpoint in endpoints if endpoint.socket is not None})
        failed: dict[str, str] = {}
        for endpoint in endpoints:
            if endpoint.transport == "unix":
                try:
                    await sockets.open(endpoint)
                except OSError as fault:
                    failed[endpoint.name] = str(fault)
                    logger.warning("the endpoint of %s is not open: %s", endpoint.name, fault)
        if known or endpoints:
            open_ = [endpoint.name for endpoint in endpoints if endpoint.name not in failed]
            self._editor.report("endpoints", {"open": open_, "failed": failed})


class SessionEvents:
    """Tells the editor which agents are there and what they say, and sends them what it pushes."""

    def __init__(self, editor: Editor) -> None:
        self._editor = editor
        self._sessions: Sessions | None = None
        self._notices: WeakKeyDictionary[Session, TokenBucket] = WeakKeyDictionary()
        editor.on_push(self._push)

    def of(self, sessions: Sessions) -> None:
        """These are the sessions that are pushed to."""
        self._sessions = sessions

    def opened(self, session: Session) -> None:
        """It can be told things."""
        client, _ = session.peer.identity
        name, version = str(client.get("name", ""))[:200], str(client.get("version", ""))[:200]
        self._tell("opened", session, client=name, version=version)

    def notified(self, session: Session, method: str, params: Mapping[str, Any] | None) -> None:
        """It says something that MCP does not know; too much of it is dropped."""
        now = time.monotonic()
        fresh = TokenBucket(NOTICES_PER_SECOND, NOTICES_AT_ONCE, now)
        if self._notices.setdefault(session, fresh).take(now):
            logger.debug("an agent sends more notifications than the editor is told of")
            return
        text = jsonrpc.dumps(params or {})
        if len(text) + len(method) > MAX_NOTICE:
            logger.warning("an agent's notification of %d bytes is dropped", len(text))
            return
        self._tell("notified", session, method=method, params=text.decode())

    def left(self, session: Session) -> None:
        """It is gone."""
        self._tell("left", session)

    def _tell(self, event: str, session: Session, **more: str) -> None:
        data = {"companion": session.companion, "session": session.key, **more}
        self._editor.companion(event, data)

    def _push(self, companion: str, session: str | None, method: str, params: str, latest: bool) -> None:
        if self._sessions is None:
            return
        text = params.encode()
        for each in self._sessions.of_companion(companion):
            if session is None or each.key == session:
                each.tell(method, text, latest=latest)
