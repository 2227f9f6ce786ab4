"""Stages of a call that most never reach: it goes on after its start, or its client goes and comes back.

What each stage keeps of a call; waiting.py owns the one, parking.py the other.
Does not know about: calls, the editor.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Coroutine
from typing import Any

from ..values import Outcome, Parked, Reply


class Following:
    """What waiting for one call takes.

    Attributes:
        active: somebody waits at this moment.
        poll: the one that is under way.
        next_poll: when the next one is due; set by the first wait, or a wake before it.
        taking: a large result, as soon as there is room for it.
    """

    __slots__ = ("_asking", "active", "next_poll", "poll", "polls", "taking")

    def __init__(self) -> None:
        self.active = False
        self.poll: asyncio.Future[Reply] | None = None
        self.polls = 0
        self.next_poll = math.inf
        self.taking: asyncio.Task[None] | None = None
        self._asking: asyncio.Task[None] | None = None

    def start_asking(self, asking: Coroutine[Any, Any, None]) -> None:
        """The client is asked."""
        self._asking = asyncio.get_running_loop().create_task(asking)

    def stop_asking(self) -> None:
        """Nobody wants the answer any more."""
        if self._asking is not None:
            self._asking.cancel()

    def stop(self) -> None:
        """The call has ended."""
        self.stop_asking()
        if self.poll is not None:
            self.poll.cancel()
        if self.taking is not None:
            self.taking.cancel()


class Stay:
    """A call whose client was told to come back.

    Attributes:
        timer: runs while the client is away.
        leg: what the retries of the client wait for.
        waiting: how many do.
    """

    __slots__ = ("leg", "timer", "waiting")

    def __init__(self) -> None:
        self.timer: asyncio.TimerHandle | None = None
        self.leg: asyncio.Task[Outcome | Parked] | None = None
        self.waiting = 0

    def stop_timer(self) -> None:
        """The client is back, or need not come any more."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
