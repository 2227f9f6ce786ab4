"""A call that goes on after its start: one wait per turn, until a wake-up, poll, heartbeat or the deadline.

Receives calls from `Calls`, and what the editor says about them. Sends polls, the client's answers to what a
tool asks, and a cancel when the editor did not end a call in time.
Does not know about: how a call began, who waits for it, other calls.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Any

from ..editor import Editor
from ..errors import Code, EditorGoneError, NoAnswerError
from ..model import Inputs, Outcome, Reply, ToolError
from .call import HEARTBEAT, Ask, Call
from .outcomes import failed, gone

POLLS = (0.1, 0.2, 0.4, 0.8)
"""Seconds before the first fallback polls; then one each second."""


class Follower:
    """See the head of this file.

    Args:
        editor: asked how calls are.
        log: level and text.
        time: the event loop's.
        ended_away: told of a call that ends while its client is away.
    """

    def __init__(
        self,
        editor: Editor,
        log: Callable[[str, str], None],
        time: Callable[[], float],
        ended_away: Callable[[Call], None],
    ) -> None:
        self._editor = editor
        self._log = log
        self._time = time
        self._ended_away = ended_away

    async def follow(self, call: Call) -> Outcome | None:
        """Waits for the end of a call that goes on; None = its client has to come back with answers."""
        loop = asyncio.get_running_loop()
        now = self._time()
        call.following = True
        if call.next_poll == math.inf:
            call.next_poll = now + POLLS[0]
        call.next_beat = max(call.next_beat, now + HEARTBEAT)
        while call.outcome is None:
            if call.inputs is not None:
                if call.ask is None:
                    call.following = False
                    return None
                self._ask(call, call.inputs, call.ask)
            now = self._time()
            if now >= call.deadline:
                return self._net(call)
            if now >= call.next_beat:
                call.beat()
            if now >= call.next_poll and call.poll is None:
                self.poll(call)
            due = min(call.next_beat, call.deadline)
            if call.poll is None:
                due = min(due, call.next_poll)
            call.wait = loop.create_future()
            timer = loop.call_at(due, call.ring)
            try:
                await call.wait
            finally:
                timer.cancel()
        return call.outcome

    def poll(self, call: Call) -> None:
        """Asks how the call is."""
        call.poll = self._editor.get_result(call.id, call.progress.seq)
        call.poll.add_done_callback(lambda reply: self._polled(call, reply))

    def _polled(self, call: Call, reply: asyncio.Future[Reply]) -> None:
        call.poll = None
        call.next_poll = self._time() + (POLLS[call.polls] if call.polls < len(POLLS) else 1.0)
        call.polls += 1
        self._heard(call, reply)

    def _heard(self, call: Call, reply: asyncio.Future[Reply]) -> None:
        if reply.cancelled() or call.outcome is not None:
            return
        fault = reply.exception()
        if fault is None:
            self.take(call, reply.result())
        elif isinstance(fault, EditorGoneError):
            call.end(gone())
        elif not isinstance(fault, NoAnswerError):  # silence: the call waits for its own deadline
            self._log("error", f"call {call.id} ({call.request.name}): {fault}")
            call.end(failed(Code.EXECUTION_ERROR, "the plugin failed inside Neovim; see its log"))
        call.ring()

    # Inputs of the client

    def _ask(self, call: Call, inputs: Inputs, ask: Ask) -> None:
        call.inputs, call.asked = None, inputs.seq

        async def asking() -> None:
            self.answer(call, inputs.seq, await ask(inputs.requests))

        call.asking = asyncio.get_running_loop().create_task(asking())

    def answer(self, call: Call, seq: int, answers: dict[str, Any]) -> None:
        """Hands the client's answers on."""
        # An editor that is silent for long has the answers nevertheless; the polls tell when it went on.
        reply = self._editor.answer(call.id, seq, answers)
        reply.add_done_callback(lambda reply: self._heard(call, reply))

    def take(self, call: Call, reply: Reply) -> None:
        """Learns what the editor said about a call."""
        call.take(reply)
        if call.parked is not None and call.outcome is not None:
            self._ended_away(call)

    def _net(self, call: Call) -> Outcome:
        """The editor should have ended the call itself; it is busy or dead."""
        self._editor.cancel(call.id, "timeout")
        text = "the tool's time is over and Neovim does not answer; it is told to cancel the tool"
        call.end(Outcome("timed_out", error=ToolError(Code.TIMEOUT, text)))
        assert call.outcome is not None  # noqa: S101 - `end` has just set it
        return call.outcome
