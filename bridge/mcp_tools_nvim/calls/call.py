"""One call in flight: its state, deadline and progress; it settles once."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Literal, Protocol

from ..values import CallRequest, CallState, Inputs, Outcome, Progress, Reply

if TYPE_CHECKING:
    from .parking import Stay
    from .waiting import Following

HEARTBEAT = 10.0
"""Seconds between signs of life, so that clients with limits of 60 s and less stay."""
NET = 2.0
"""Seconds after the editor's own deadline at which the bridge stops waiting for it."""
TAKEN_WITHIN = 30.0
"""Seconds that a large result may wait for room; as long as clients may leave their answers unread."""
HAIR = 0.0001
"""What a heartbeat adds: progress must rise, but stay below the tool's next value; people see the number."""

_WAITING_FOR: dict[str, str] = {
    "waiting_approval": "waiting for the person's approval",
    "waiting_input": "waiting for an answer",
}
_NOTHING_YET = Progress(0, -math.inf)


class Observer(Protocol):
    """What a transport does with a call's events; synchronous, never blocks."""

    def progress(self, p: Progress) -> None:
        """Progress, or a heartbeat; `p.done` always rises."""

    def log(self, level: str, data: Any) -> None:
        """The tool logged `data`."""


class Nobody:
    """The observer of a call whose client is away."""

    def progress(self, p: Progress) -> None:
        """Nobody sees it."""

    def log(self, level: str, data: Any) -> None:
        """Nobody reads it."""


Ask = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
"""Asks the client for all of `{key: {method, params?}}`; gives `{key: {"result": …} | {"error": …}}`."""


class Call:
    """One call in flight. `wait` is what its runner waits for at this moment; `ring` ends that wait.

    Attributes:
        request: what was asked for.
        observer: who hears of its progress.
        ask: how its client is asked for inputs; None = the client has to come back with its answers.
        state: where it is, as far as the bridge knows; of a call that has ended, where it was before.
        outcome: how it ended. To have one is to have ended: there is no other sign of it.
        answered: the outcome is the editor's, which holds the result until it is acknowledged.
        deadline: when this side stops waiting: the editor's own one + `NET`.
        progress: the last one that the observer got.
        next_beat: when the observer hears at the latest that the call lives.
        inputs: a question that nothing was done about yet.
        size: bytes of a large result that is to be asked for: the tool has ended, the call has not.
        following: of waiting.py, while or after a call goes on; None for those that are answered at once.
        stay: of parking.py, once its client was told to come back.
        task: the one in which its client waits, or has waited.
    """

    __slots__ = (
        "_asked",
        "_time",
        "_withdrawn",
        "answered",
        "ask",
        "deadline",
        "following",
        "id",
        "inputs",
        "next_beat",
        "observer",
        "outcome",
        "progress",
        "request",
        "size",
        "state",
        "stay",
        "task",
        "wait",
    )

    def __init__(
        self,
        call_id: str,
        request: CallRequest,
        observer: Observer,
        time: Callable[[], float],
        ask: Ask | None = None,
    ) -> None:
        self.id = call_id
        self.request = request
        self.observer: Observer = observer
        self.ask = ask
        self.outcome: Outcome | None = None
        self.state: Literal["received", "sent"] | CallState = "received"
        self.answered = False
        self.deadline = math.inf
        self.progress = _NOTHING_YET
        self.next_beat = 0.0
        self.wait: asyncio.Future[Any] | None = None
        self.inputs: Inputs | None = None
        self.size: int | None = None
        self.following: Following | None = None
        self.stay: Stay | None = None
        self.task: asyncio.Task[Any] | None = None
        self._asked = 0  # the last question that something was done about
        self._withdrawn = 0  # the last question that was taken back
        self._time = time

    @property
    def ended(self) -> bool:
        """Is the outcome known? Any await may change it."""
        return self.outcome is not None

    @property
    def silent(self) -> bool:
        """Was it sent, without a sign of the editor since?"""
        return self.state == "sent" and self.outcome is None

    @property
    def sent(self) -> bool:
        """May the editor know of it?"""
        return self.state != "received"

    @property
    def away(self) -> bool:
        """Has its client gone, to come back with answers?"""
        return self.stay is not None and self.stay.timer is not None

    # Moves

    def send(self) -> None:
        """It goes to the editor."""
        self.state = "sent"

    def start(self, deadline: float | None) -> None:
        """The editor says that the tool is about to run; None = no deadline."""
        if self.outcome is None:
            self.state = "running"
            self.deadline = math.inf if deadline is None else deadline + NET
            if self.following is not None:
                self._stir()

    def end(self, outcome: Outcome) -> Outcome:
        """Settles the call. Only the first outcome counts; that is what comes back."""
        if self.outcome is None:
            self.outcome = outcome
            self.ring()
        return self.outcome

    def correct(self, outcome: Outcome) -> Outcome:
        """The editor's answer turned out to be another one than it seemed."""
        self.outcome = outcome
        return outcome

    def take(self, reply: Reply) -> None:
        """Learns what the editor said."""
        if self.outcome is not None:
            return
        if reply.progress is not None:
            self.advance(reply.progress)
        if reply.outcome is not None:
            self.answered = True
            self.end(reply.outcome)
            return
        # Events and replies may overtake each other: a call that has started is past its approval.
        if reply.state != "waiting_approval" or self.state not in ("running", "waiting_input"):
            self.state = reply.state
        if reply.size is not None:
            self._end_large(reply.size)
            return
        self.deadline = math.inf if reply.deadline is None else reply.deadline + NET
        self._take_inputs(reply.inputs, reply.withdrawn)
        self._stir()

    def _end_large(self, size: int) -> None:
        """Nothing is asked any more, and the tool's time counts no longer: the result has to be taken."""
        if self.size is None:
            self.size, self.inputs = size, None
            self.deadline = self._time() + TAKEN_WITHIN
            if self.following is not None:
                self.following.stop_asking()
            self._stir()

    def _take_inputs(self, inputs: Inputs | None, withdrawn: int) -> None:
        """Learns what is asked, and what no longer is. Replies and wakes may overtake each other."""
        self._withdrawn = max(self._withdrawn, withdrawn)
        if self.inputs is not None and self.inputs.seq <= self._withdrawn:
            self.inputs = None
        if self.following is not None and self._asked <= self._withdrawn:
            self.following.stop_asking()
        if inputs is not None and inputs.seq > max(self._asked, self._withdrawn):
            self.inputs = inputs

    def take_question(self) -> Inputs | None:
        """The open question, once: from now on something is done about it."""
        inputs, self.inputs = self.inputs, None
        if inputs is not None:
            self._asked = inputs.seq
        return inputs

    # Waiting

    def ring(self) -> None:
        """Ends the wait of this moment."""
        if self.wait is not None and not self.wait.done():
            self.wait.set_result(None)

    def _stir(self) -> None:
        """Something is new: who follows the call looks again."""
        if self.following is not None and self.following.active:
            self.ring()

    # Time and progress

    def advance(self, new: Progress) -> None:
        """Passes on progress that the observer has not seen yet, always rising."""
        if new.seq > self.progress.seq:
            least = _hair_above(self.progress.done)
            self._show(
                new if new.done >= least else Progress(new.seq, least, new.total, new.message, new.state)
            )

    def beat(self) -> None:
        """Shows that the call lives."""
        last = self.progress
        message = _WAITING_FOR.get(self.state, last.message)
        done = _hair_above(max(0.0, last.done))
        self._show(Progress(last.seq, done, last.total, message))

    def _show(self, progress: Progress) -> None:
        self.progress = progress
        self.next_beat = self._time() + HEARTBEAT
        self.observer.progress(progress)


def _hair_above(value: float) -> float:
    """The next larger number that is pleasant to read; large ones have no place for a hair."""
    if value == -math.inf:
        return value
    rounded = round(value + HAIR, 4)
    return rounded if rounded > value else math.nextafter(value, math.inf)
