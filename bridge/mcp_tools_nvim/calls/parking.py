"""Calls whose client is away: it was asked for something and has to come back with its answers.

While a client waits (a leg), its going cancels the call; between two legs only time does. A call may also end
between two legs: somebody else has answered, or has called it off.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, MutableMapping
from typing import Any

from ..errors import Code
from ..neovim import Editor
from ..values import Inputs, Outcome, Parked, ToolError
from .call import Call, Nobody

KEPT_SECONDS = 60.0
"""How long an outcome is there for a client that lost the answer and retries."""
KEPT_CHARACTERS = 64 * 1024 * 1024
"""All kept outcomes together; the oldest give way."""


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


class Parking:
    """See the head of this file.

    Args:
        editor: told when nobody came back.
        seconds: how long a client may stay away.
        unclaimed: seconds for which an outcome is kept that no client was given.
        remove: takes a call out for good.
    """

    def __init__(
        self, editor: Editor, seconds: float, unclaimed: float, remove: Callable[[Call], None]
    ) -> None:
        self._editor = editor
        self._seconds = seconds
        self._unclaimed = unclaimed
        self._remove = remove
        self._kept: dict[str, Outcome] = {}
        self._size = 0

    def park(self, call: Call, inputs: Inputs) -> Parked:
        """The client is given the question and goes; its time begins anew."""
        stay = _of(call)
        stay.stop_timer()
        stay.timer = asyncio.get_running_loop().call_later(self._seconds, self._expire, call)
        call.observer = Nobody()
        return Parked(call.id, inputs)

    async def rejoin(
        self,
        call: Call,
        leg: Callable[[], Coroutine[Any, Any, Outcome | Parked]],
        reasons: MutableMapping[asyncio.Task[Any], str],
    ) -> Outcome | Parked:
        """The client is back. All who wait share one leg; when the last of them goes, the call is cancelled.

        Args:
            call: not ended, and its question is answered.
            leg: the way to its end or its next question.
            reasons: why a task is cancelled.
        """
        stay = _of(call)
        stay.stop_timer()
        if stay.leg is None or stay.leg.done():
            stay.leg = asyncio.get_running_loop().create_task(leg())
        shared = stay.leg
        stay.waiting += 1
        try:
            return await asyncio.shield(shared)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if shared.cancelled() and call.outcome is not None and not (task and task.cancelling()):
                return call.outcome  # it joined when the last of the others had just gone
            if stay.waiting == 1 and not shared.done():
                reasons[shared] = "disconnected" if task is None else reasons.pop(task, "disconnected")
                shared.cancel()
            raise
        finally:
            stay.waiting -= 1

    def leave(self, call: Call) -> None:
        """A call has ended while its client was away."""
        self._remove(call)
        _of(call).stop_timer()

    def keep(self, call: Call) -> None:
        """Keeps the outcome of a call whose client may come back."""
        if call.stay is None or call.outcome is None:
            return
        self._kept[call.id] = call.outcome
        self._size += len(call.outcome.text)
        while self._size > KEPT_CHARACTERS and len(self._kept) > 1:
            self._forget(next(iter(self._kept)))
        seconds = self._unclaimed if call.away else KEPT_SECONDS
        asyncio.get_running_loop().call_later(seconds, self._forget, call.id)

    def kept(self, task_id: str) -> Outcome | None:
        """The outcome of a call that has ended not long ago."""
        return self._kept.get(task_id)

    def _expire(self, call: Call) -> None:
        self._editor.cancel(call.id, "timeout")
        text = f"the client did not come back with its answers within {self._seconds:.0f} s"
        call.end(Outcome("timed_out", error=ToolError(Code.TIMEOUT, text)))
        self.leave(call)

    def ease(self, size: int) -> None:
        """There is no room for more results: the oldest outcomes give way."""
        while size > 0 and self._kept:
            before = self._size
            self._forget(next(iter(self._kept)))
            size -= before - self._size

    def _forget(self, task_id: str) -> None:
        outcome = self._kept.pop(task_id, None)
        if outcome is not None:
            self._size -= len(outcome.text)


def _of(call: Call) -> Stay:
    if call.stay is None:
        call.stay = Stay()
    return call.stay
