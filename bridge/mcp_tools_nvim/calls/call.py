"""One call in flight: its state, deadline and progress; it ends exactly once."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Any, Literal, Protocol

from ..errors import Code
from ..values import (
    AWAITS_APPROVAL,
    CallRequest,
    CallState,
    Inputs,
    Outcome,
    Parked,
    Progress,
    Reply,
    ToolError,
)

HEARTBEAT = 10.0
"""Maximum seconds between progress notifications; clients have timeouts of 60 s or less."""
APPROVAL_BEAT = 1.0
"""Seconds until the client is first notified that its call awaits approval."""
DEADLINE_SLACK = 2.0
"""Seconds after Neovim's deadline at which the bridge stops waiting."""
FETCH_TIMEOUT = 30.0
"""Maximum seconds to wait for room for a large result."""
MIN_PROGRESS_STEP = 0.0001
"""Increment of a heartbeat's progress, which must rise but stay below the tool's next value."""

PLUGIN_FAILED = "the plugin failed inside Neovim; see :McpTools log"

_WAITING_FOR: dict[str, str] = {
    "waiting_approval": AWAITS_APPROVAL,
    "waiting_input": "waiting for an answer",
}
_NOTHING_YET = Progress(0, -math.inf)


def failed(code: Code, message: str) -> Outcome:
    """Returns a failed outcome."""
    return Outcome("failed", error=ToolError(code, message))


def gone() -> Outcome:
    """Returns the outcome of a call whose Neovim has exited."""
    text = "Neovim has exited or crashed during the call; open it in this project and try again"
    return failed(Code.EDITOR_GONE, text)


class Observer(Protocol):
    """Receives the events of a call; must not block."""

    def progress(self, p: Progress) -> None:
        """Receives progress or a heartbeat; `p.done` always rises."""

    def log(self, level: str, data: Any) -> None:
        """Receives a log message of the tool."""


class NullObserver:
    """Ignores the events of a call."""

    def progress(self, p: Progress) -> None:
        """Does nothing."""

    def log(self, level: str, data: Any) -> None:
        """Does nothing."""


Ask = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
"""Sends the client `{key: {method, params?}}`; returns `{key: {"result": …} | {"error": …}}`."""


class Call:
    """One call in flight. `wait` is what its runner is waiting for; `end_wait` ends that wait.

    Attributes:
        request: the request.
        observer: receives progress and log messages.
        ask: asks the client for inputs; None = the client must send the request again with its answers.
        state: last known state before the end.
        outcome: how the call ended. The call has ended if and only if it is set.
        answered: the outcome is from Neovim, which keeps the result until it is acknowledged.
        deadline: when the bridge stops waiting: Neovim's deadline + `DEADLINE_SLACK`.
        progress: the last progress that the observer got.
        next_beat: when the next heartbeat is due.
        inputs: an open question, not sent to the client yet.
        size: bytes of a large result that must be fetched: the tool has ended, the call has not.
        task: the task that the client waits for, or has waited for.
        is_followed: a task waits for its end, in waiting.py.
        poll: the poll in flight.
        polls: number of polls.
        next_poll: when the next poll is due; set when the wait begins, or by a `wake` event.
        taking: task that fetches a large result as soon as there is room.
        asking: task that asks the client.
        was_parked: the call is or was parked.
        absence: timer of a parked call, until its client continues it.
        attempt: task that all retries of the client wait for.
        retries: number of retries that wait for `attempt`.
    """

    state: Literal["received", "sent"] | CallState = "received"
    outcome: Outcome | None = None
    answered = False
    deadline = math.inf
    progress = _NOTHING_YET
    next_beat = 0.0
    wait: asyncio.Future[Any] | None = None
    inputs: Inputs | None = None
    size: int | None = None
    task: asyncio.Task[Any] | None = None
    is_followed = False
    poll: asyncio.Future[Reply] | None = None
    polls = 0
    next_poll = math.inf
    taking: asyncio.Task[None] | None = None
    asking: asyncio.Task[None] | None = None
    was_parked = False
    absence: asyncio.TimerHandle | None = None
    attempt: asyncio.Task[Outcome | Parked] | None = None
    retries = 0
    _asked = 0  # number of the last question that was asked
    _withdrawn = 0  # number of the last question that was withdrawn

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
        self.observer = observer
        self.ask = ask
        self._time = time

    @property
    def ended(self) -> bool:
        """Whether the outcome is known. Any await may change it."""
        return self.outcome is not None

    @property
    def silent(self) -> bool:
        """Whether it was sent, and Neovim has not reacted yet."""
        return self.state == "sent" and self.outcome is None

    @property
    def sent(self) -> bool:
        """Whether Neovim may have received it."""
        return self.state != "received"

    @property
    def is_parked(self) -> bool:
        """Whether the client must still send the request again with its answers."""
        return self.absence is not None

    def start(self, deadline: float | None) -> None:
        """Marks the tool as running; `deadline` None = no limit."""
        if self.outcome is None:
            self.state = "running"
            self.deadline = math.inf if deadline is None else deadline + DEADLINE_SLACK
            self._notify_follower()

    def end(self, outcome: Outcome) -> Outcome:
        """Ends the call with the first outcome, and returns that one; later outcomes are ignored."""
        if self.outcome is None:
            self.outcome = outcome
            self.end_wait()
        return self.outcome

    def correct(self, outcome: Outcome) -> Outcome:
        """Replaces an outcome whose text cannot be sent."""
        self.outcome = outcome
        return outcome

    def take(self, reply: Reply) -> None:
        """Applies a reply of Neovim."""
        if self.outcome is not None:
            return
        if reply.progress is not None:
            self.advance(reply.progress)
        if reply.outcome is not None:
            self.answered = True
            self.end(reply.outcome)
            return
        # A reply may arrive after a later event; approval always precedes the start.
        if reply.state != "waiting_approval" or self.state not in ("running", "waiting_input"):
            self.state = reply.state
        if reply.size is not None:
            self._end_large(reply.size)
            return
        self.deadline = math.inf if reply.deadline is None else reply.deadline + DEADLINE_SLACK
        self._take_inputs(reply.inputs, reply.withdrawn)
        self._notify_follower()

    def _end_large(self, size: int) -> None:
        """Records that the tool has ended with a large result, which must be fetched."""
        if self.size is None:
            self.size, self.inputs = size, None
            self.deadline = self._time() + FETCH_TIMEOUT
            self.stop_asking()
            self._notify_follower()

    def _take_inputs(self, inputs: Inputs | None, withdrawn: int) -> None:
        """Updates the open question. Replies and events may arrive in the wrong order."""
        self._withdrawn = max(self._withdrawn, withdrawn)
        if self.inputs is not None and self.inputs.seq <= self._withdrawn:
            self.inputs = None
        if self._asked <= self._withdrawn:
            self.stop_asking()
        if inputs is not None and inputs.seq > max(self._asked, self._withdrawn):
            self.inputs = inputs

    def next_question(self) -> Inputs | None:
        """Returns the open question, only once."""
        inputs, self.inputs = self.inputs, None
        if inputs is not None:
            self._asked = inputs.seq
        return inputs

    def end_wait(self) -> None:
        """Ends the current wait."""
        if self.wait is not None and not self.wait.done():
            self.wait.set_result(None)

    def _notify_follower(self) -> None:
        """Wakes the follower, if one is waiting."""
        if self.is_followed:
            self.end_wait()

    def stop_asking(self) -> None:
        """Stops asking the client."""
        if self.asking is not None:
            self.asking.cancel()

    def stop(self) -> None:
        """Stops everything that was started for the call, after its end."""
        for work in (self.asking, self.poll, self.taking, self.absence):
            if work is not None:
                work.cancel()
        self.absence = None

    def advance(self, new: Progress) -> None:
        """Passes new progress to the observer, with rising numbers."""
        if new.seq > self.progress.seq:
            least = _slightly_above(self.progress.done)
            self._show(
                new if new.done >= least else Progress(new.seq, least, new.total, new.message, new.state)
            )

    def beat(self) -> None:
        """Sends a heartbeat as progress."""
        last = self.progress
        message = _WAITING_FOR.get(self.state, last.message)
        done = _slightly_above(max(0.0, last.done))
        self._show(Progress(last.seq, done, last.total, message))

    def _show(self, progress: Progress) -> None:
        self.progress = progress
        self.next_beat = self._time() + HEARTBEAT
        self.observer.progress(progress)


def _slightly_above(value: float) -> float:
    """Returns a slightly larger number with few digits."""
    if value == -math.inf:
        return value
    rounded = round(value + MIN_PROGRESS_STEP, 4)
    return rounded if rounded > value else math.nextafter(value, math.inf)
