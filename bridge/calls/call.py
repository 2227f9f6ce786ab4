"""One call in flight: its state, deadline and progress; it settles once.

Receives replies and events from `Calls`; sends progress to its observer, and rings whoever waits for it.
Does not know about: the editor, timers, other calls.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from ..model import CallRequest, Inputs, Outcome, Progress, Reply
from .states import Event, State, step

HEARTBEAT = 10.0
"""Seconds between signs of life, so that clients with limits of 60 s and less stay."""
NET = 2.0
"""Seconds after the editor's own deadline at which the bridge stops waiting for it."""
HAIR = 1e-9
"""What a heartbeat adds: progress must rise, but stay below the tool's next value."""

_STATE_EVENTS = {
    "running": Event.RUNS,
    "waiting_approval": Event.ASKS_PERSON,
    "waiting_input": Event.ASKS_CLIENT,
}
_END_EVENTS = {
    "done": Event.RESULT,
    "failed": Event.FAILURE,
    "timed_out": Event.DEADLINE,
    "cancelled": Event.CANCEL,
}
_WAITING_FOR = {
    State.WAITING_APPROVAL: "waiting for the person's approval",
    State.WAITING_INPUT: "waiting for an answer",
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
    """One call in flight. `wait` is what `run` waits for at this moment; `ring` ends that wait."""

    __slots__ = (
        "answered",
        "ask",
        "asked",
        "asking",
        "deadline",
        "following",
        "id",
        "inputs",
        "leg",
        "legs",
        "next_beat",
        "next_poll",
        "observer",
        "outcome",
        "parked",
        "poll",
        "polls",
        "progress",
        "request",
        "returns",
        "state",
        "time",
        "wait",
        "withdrawn",
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
        self.ask = ask  # None: the client has to come back with its answers
        self.inputs: Inputs | None = None  # a question that nothing was done about yet
        self.asked = 0  # the last question that something was done about
        self.withdrawn = 0  # the last question that was taken back
        self.asking: asyncio.Task[None] | None = None
        self.parked: asyncio.TimerHandle | None = None  # while its client is away
        self.leg: asyncio.Task[Any] | None = None  # what the retries of its client wait for
        self.legs = 0  # how many do
        self.returns = False  # its client was told to come back
        self.time = time
        self.state = State.RECEIVED
        self.outcome: Outcome | None = None
        self.answered = False  # the outcome is the editor's: it holds the result until acknowledged
        self.deadline = math.inf  # ours: the editor's own + NET
        self.progress = _NOTHING_YET  # the last one that the observer got
        self.wait: asyncio.Future[Any] | None = None
        self.following = False
        self.poll: asyncio.Future[Reply] | None = None
        self.polls = 0
        self.next_poll = math.inf  # set by the first wait, or a wake before it
        self.next_beat = 0.0

    def ended(self) -> bool:
        """Tells whether the outcome is known; any await may change it."""
        return self.outcome is not None

    def ring(self) -> None:
        """Ends the wait of this moment."""
        if self.wait is not None and not self.wait.done():
            self.wait.set_result(None)

    def end(self, outcome: Outcome) -> None:
        """Settles the call; only the first outcome counts."""
        if self.outcome is None:
            self.state = step(self.state, _END_EVENTS[outcome.state])
            self.outcome = outcome
            self.ring()

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
        self.state = step(self.state, _STATE_EVENTS[reply.state])
        self.limit(reply.deadline)
        self._take_inputs(reply.inputs, reply.withdrawn)
        if self.following:
            self.ring()

    def _take_inputs(self, inputs: Inputs | None, withdrawn: int) -> None:
        """Learns what is asked, and what no longer is. Replies and wakes may overtake each other."""
        self.withdrawn = max(self.withdrawn, withdrawn)
        if self.inputs is not None and self.inputs.seq <= self.withdrawn:
            self.inputs = None
        if self.asking is not None and self.asked <= self.withdrawn:
            self.asking.cancel()
        if inputs is not None and inputs.seq > max(self.asked, self.withdrawn):
            self.inputs = inputs

    def limit(self, deadline: float | None) -> None:
        """Sets the editor's deadline; None = no limit."""
        self.deadline = math.inf if deadline is None else deadline + NET

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
        self.next_beat = self.time() + HEARTBEAT
        self.observer.progress(progress)


def _hair_above(value: float) -> float:
    return max(value + HAIR, math.nextafter(value, math.inf)) if value > -math.inf else value
