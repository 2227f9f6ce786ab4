"""The companions of an editor, put together: their doors are opened, and follow what the editor says.

Receives: doors, with `hello` and later. Sends: which of them stand, and why another does not.
Does not know about: what comes in by them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..editor import Editor
from ..model import Door
from .doors import Doors
from .presence import Presence

if TYPE_CHECKING:
    from ..http.app import App
    from ..http.endpoints import Front
    from .unix import UnixSockets

logger = logging.getLogger(__name__)


class Companions:
    """See the head of this file.

    Args:
        editor: has the companions.
        doors: as `hello` told them.
        hide: is told of each token, which is to be in no log.
    """

    def __init__(self, editor: Editor, doors: tuple[Door, ...], hide: Callable[[str], None]) -> None:
        self._editor = editor
        self._wanted = doors
        self._hide = hide
        self.doors = Doors()
        self.presence = Presence(editor)
        self._front: Front | None = None
        self._sockets: UnixSockets | None = None
        self._work: asyncio.Task[None] | None = None
        self._again = False
        editor.on_doors(self._changed)

    def join(self, app: App) -> None:
        """Serves beside the application, at its port."""
        from .front import DoorFront
        from .unix import UnixSockets

        self._front = app.front
        self.presence.of(app.front.sessions)
        front = DoorFront(app.front, self.doors, app.body_limit)
        self._sockets = UnixSockets(front.welcomes, app.body_limit)
        app.guests = front

    async def open(self) -> None:
        """Opens the doors that are wanted now, and says which stand."""
        while True:
            self._again = False
            await self._open(self._wanted)
            if not self._again:
                return

    def let_go(self) -> None:
        """Ends what agents read, at the end of the bridge; what they wait for gets no answer.

        The person can then decide in the terminal of the agent, which takes a cancelled proposal for a no.
        """
        if self._front is not None:
            self._front.sessions.let_companions_go()

    async def close(self) -> None:
        """Closes the sockets; what is at the port ends with it."""
        if self._work is not None:
            self._work.cancel()
        if self._sockets is not None:
            await self._sockets.close()

    def _changed(self, doors: tuple[Door, ...]) -> None:
        self._wanted, self._again = doors, True
        if self._front is not None and (self._work is None or self._work.done()):
            self._work = asyncio.get_running_loop().create_task(self.open())

    async def _open(self, doors: tuple[Door, ...]) -> None:
        front, sockets = self._front, self._sockets
        if front is None or sockets is None:
            return
        for door in doors:
            self._hide(door.token)
        known = set(self.doors)
        self.doors.set(doors)
        for gone in known - set(doors):
            for session in front.sessions.of_companion(gone.name):
                front.sessions.drop(session)
        await sockets.keep({door.socket for door in doors if door.socket is not None})
        failed: dict[str, str] = {}
        for door in doors:
            if door.transport == "unix":
                try:
                    await sockets.open(door)
                except OSError as fault:
                    failed[door.name] = str(fault)
                    logger.warning("the door of %s does not stand: %s", door.name, fault)
        if known or doors:
            stand = [door.name for door in doors if door.name not in failed]
            self._editor.report("doors", {"open": stand, "failed": failed})
