"""The companions of an editor, put together: their endpoints are opened, and follow what the editor says.

Receives: endpoints, with `hello` and later. Sends: which of them are open, and why another is not.
Does not know about: what comes in by them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..neovim import Editor
from ..values import Endpoint
from .endpoints import Endpoints
from .registrations import Registrations
from .session_events import SessionEvents

if TYPE_CHECKING:
    from ..http.app import App
    from ..http.endpoints import Front
    from .router import CompanionRouter
    from .unix import UnixSockets

FLUSH_SECONDS = 0.05
"""For the agents to read what the editor told them last, such as the rejection of a proposal."""

logger = logging.getLogger(__name__)


class Companions:
    """See the head of this file.

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
        from .router import CompanionRouter
        from .unix import UnixSockets

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
