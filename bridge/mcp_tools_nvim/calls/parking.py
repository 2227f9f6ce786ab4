"""Parked calls: the client was asked a question and must send the request again with its answers.

During such a request (an attempt), a disconnect cancels the call; between two attempts, only a timeout does.
A call may also end between two attempts, when its question is answered in Neovim, say.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import Code
from ..neovim.nvim import NvimEditor
from ..values import Inputs, Outcome, Parked, ToolError
from .call import Call, NullObserver

OUTCOME_SECONDS = 60.0
"""How long an outcome is kept for a client that did not get it and retries."""
MAX_KEPT = 256
"""Maximum number of kept outcomes. Large ones are dropped earlier, when their memory is needed."""


@dataclass(slots=True)
class Parking:
    """All parked calls, and outcomes of ended ones.

    Args:
        editor: cancels a call after the timeout.
        seconds: timeout of a parked call.
        unclaimed: seconds to keep the outcome of a call that ended while parked.
        remove: removes a call.
    """

    _editor: NvimEditor
    _seconds: float
    _unclaimed: float
    _remove: Callable[[Call], None]
    _kept: dict[str, Outcome] = field(default_factory=dict, init=False)

    def park(self, call: Call, inputs: Inputs) -> Parked:
        """Parks a call with a question, and starts the timeout."""
        _stop_timer(call)
        call.was_parked = True
        call.absence = asyncio.get_running_loop().call_later(self._seconds, self._expire, call)
        call.observer = NullObserver()
        return Parked(call.id, inputs)

    async def rejoin(
        self,
        call: Call,
        attempt: Callable[[], Coroutine[Any, Any, Outcome | Parked]],
        reasons: MutableMapping[asyncio.Task[Any], str],
    ) -> Outcome | Parked:
        """Continues a parked call. All retries share one attempt; cancelling the last retry cancels the call.

        Args:
            call: a call that has not ended and whose question is answered.
            attempt: runs the call until its end or next question.
            reasons: reasons of cancelled tasks.
        """
        _stop_timer(call)
        if call.attempt is None or call.attempt.done():
            call.attempt = asyncio.get_running_loop().create_task(attempt())
        shared = call.attempt
        call.retries += 1
        try:
            return await asyncio.shield(shared)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if shared.cancelled() and call.outcome is not None and not (task and task.cancelling()):
                return call.outcome  # the call was cancelled just before this retry began to wait
            if call.retries == 1 and not shared.done():
                reasons[shared] = "disconnected" if task is None else reasons.pop(task, "disconnected")
                shared.cancel()
            raise
        finally:
            call.retries -= 1

    def keep(self, call: Call) -> None:
        """Keeps the outcome of a parked call for a retry of its client."""
        if not call.was_parked or call.outcome is None:
            return
        self._kept[call.id] = call.outcome
        if len(self._kept) > MAX_KEPT:
            self._drop_oldest()
        seconds = self._unclaimed if call.is_parked else OUTCOME_SECONDS
        asyncio.get_running_loop().call_later(seconds, self._kept.pop, call.id, None)

    def kept(self, task_id: str) -> Outcome | None:
        """Returns the outcome of a recently ended call."""
        return self._kept.get(task_id)

    def _expire(self, call: Call) -> None:
        self._editor.cancel(call.id, "timeout")
        text = f"the client did not send its answers within {self._seconds:.0f} s"
        call.end(Outcome("timed_out", error=ToolError(Code.TIMEOUT, text)))
        self._remove(call)

    def free(self, size: int) -> None:
        """Drops the oldest outcomes until `size` characters are free."""
        while size > 0 and self._kept:
            size -= self._drop_oldest()

    def _drop_oldest(self) -> int:
        """Drops the oldest outcome and returns its number of characters."""
        return len(self._kept.pop(next(iter(self._kept))).text)


def _stop_timer(call: Call) -> None:
    if call.absence is not None:
        call.absence.cancel()
        call.absence = None
