"""Parked calls: the client was asked something and must send the request again with its answers.

While the client is connected (an attempt), disconnecting cancels the call; between two attempts only a
timeout does. A call may also end between two attempts, if it is answered or cancelled elsewhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, MutableMapping
from typing import Any

from ..errors import Code
from ..neovim.nvim import NvimEditor
from ..values import Inputs, Outcome, Parked, ToolError
from .call import Call, NullObserver

OUTCOME_SECONDS = 60.0
"""How long an outcome is kept for a client that lost the answer and retries."""
MAX_KEPT_CHARACTERS = 64 * 1024 * 1024
"""Maximum characters of all kept outcomes; above it the oldest are dropped."""


class ParkedState:
    """State of a call whose client must send the request again.

    Attributes:
        timer: runs while the client is away.
        attempt: task that all retries of the client wait for.
        waiting: number of waiting retries.
    """

    __slots__ = ("attempt", "timer", "waiting")

    def __init__(self) -> None:
        self.timer: asyncio.TimerHandle | None = None
        self.attempt: asyncio.Task[Outcome | Parked] | None = None
        self.waiting = 0

    def stop_timer(self) -> None:
        """Stops the timeout of an absent client."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


class Parking:
    """All parked calls, and outcomes of ended ones.

    Args:
        editor: gets the cancellation after a timeout.
        seconds: how long a client may be away.
        unclaimed: seconds for which an undelivered outcome is kept.
        remove: removes a call.
    """

    def __init__(
        self, editor: NvimEditor, seconds: float, unclaimed: float, remove: Callable[[Call], None]
    ) -> None:
        self._editor = editor
        self._seconds = seconds
        self._unclaimed = unclaimed
        self._remove = remove
        self._kept: dict[str, Outcome] = {}
        self._size = 0

    def park(self, call: Call, inputs: Inputs) -> Parked:
        """Parks a call with a question, and starts the timeout."""
        parked_state = _state_of(call)
        parked_state.stop_timer()
        parked_state.timer = asyncio.get_running_loop().call_later(self._seconds, self._expire, call)
        call.observer = NullObserver()
        return Parked(call.id, inputs)

    async def rejoin(
        self,
        call: Call,
        attempt: Callable[[], Coroutine[Any, Any, Outcome | Parked]],
        reasons: MutableMapping[asyncio.Task[Any], str],
    ) -> Outcome | Parked:
        """Continues a parked call. All retries share one attempt; the call is cancelled with the last one.

        Args:
            call: a call that has not ended and whose question is answered.
            attempt: runs the call until its end or next question.
            reasons: reasons of cancelled tasks.
        """
        parked_state = _state_of(call)
        parked_state.stop_timer()
        if parked_state.attempt is None or parked_state.attempt.done():
            parked_state.attempt = asyncio.get_running_loop().create_task(attempt())
        shared = parked_state.attempt
        parked_state.waiting += 1
        try:
            return await asyncio.shield(shared)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if shared.cancelled() and call.outcome is not None and not (task and task.cancelling()):
                return call.outcome  # it joined just after the last other retry was cancelled
            if parked_state.waiting == 1 and not shared.done():
                reasons[shared] = "disconnected" if task is None else reasons.pop(task, "disconnected")
                shared.cancel()
            raise
        finally:
            parked_state.waiting -= 1

    def ended(self, call: Call) -> None:
        """Removes a call that ended while its client was away."""
        self._remove(call)
        _state_of(call).stop_timer()

    def keep(self, call: Call) -> None:
        """Keeps the outcome of a call whose client may come back."""
        if call.parked_state is None or call.outcome is None:
            return
        self._kept[call.id] = call.outcome
        self._size += len(call.outcome.text)
        while self._size > MAX_KEPT_CHARACTERS and len(self._kept) > 1:
            self._forget(next(iter(self._kept)))
        seconds = self._unclaimed if call.is_parked else OUTCOME_SECONDS
        asyncio.get_running_loop().call_later(seconds, self._forget, call.id)

    def kept(self, task_id: str) -> Outcome | None:
        """Returns the outcome of a recently ended call."""
        return self._kept.get(task_id)

    def _expire(self, call: Call) -> None:
        self._editor.cancel(call.id, "timeout")
        text = f"the client did not send its answers within {self._seconds:.0f} s"
        call.end(Outcome("timed_out", error=ToolError(Code.TIMEOUT, text)))
        self.ended(call)

    def ease(self, size: int) -> None:
        """Drops the oldest outcomes, to free `size` characters."""
        while size > 0 and self._kept:
            before = self._size
            self._forget(next(iter(self._kept)))
            size -= before - self._size

    def _forget(self, task_id: str) -> None:
        outcome = self._kept.pop(task_id, None)
        if outcome is not None:
            self._size -= len(outcome.text)


def _state_of(call: Call) -> ParkedState:
    if call.parked_state is None:
        call.parked_state = ParkedState()
    return call.parked_state
