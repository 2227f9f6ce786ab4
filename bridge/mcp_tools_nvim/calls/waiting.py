"""Waits for the end of a started call: events, polls, heartbeats and the deadline wake it."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..errors import Code, EditorGoneError, NoAnswerError
from ..jsonrpc import INTERNAL_ERROR, INVALID_PARAMS
from ..neovim.nvim import NvimEditor
from ..values import Outcome, Reply, ToolError
from .arguments import MAX_VALUES, fits
from .backpressure import Backpressure
from .call import APPROVAL_BEAT, FETCH_TIMEOUT, HEARTBEAT, PLUGIN_FAILED, Ask, Call, failed, gone

POLLS, POLL_EVERY = (0.1, 0.2, 0.4, 0.8), 1.0
"""Seconds before the first polls, and between later ones."""

_TOO_MANY_VALUES = {
    "error": {
        "code": INVALID_PARAMS,
        "message": f"the answer has more than {MAX_VALUES} values and was discarded",
    }
}

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Follower:
    """Waits for started calls.

    Args:
        editor: returns the state of calls.
        time: returns the time of the event loop.
        backpressure: limits the memory of large results.
        ended_parked: called with a call that ends while it is parked.
    """

    _editor: NvimEditor
    _time: Callable[[], float]
    _backpressure: Backpressure
    _ended_parked: Callable[[Call], None]

    async def follow(self, call: Call) -> Outcome | None:
        """Waits for the end of a started call; None = the client must send the request again with answers."""
        loop = asyncio.get_running_loop()
        now = self._time()
        call.is_followed = True
        if call.next_poll == math.inf:
            call.next_poll = now + POLLS[0]
        first = APPROVAL_BEAT if call.state == "waiting_approval" else HEARTBEAT
        call.next_beat = max(call.next_beat, now + first)
        if call.size is not None:  # the tool may have ended long ago, while the call was parked
            call.deadline = now + FETCH_TIMEOUT
        while call.outcome is None:
            if call.inputs is not None:
                if call.ask is None:
                    call.is_followed = False
                    return None
                self._ask(call, call.ask)
            now = self._time()
            if now >= call.deadline:
                return self._give_up(call)
            if now >= call.next_beat:
                call.beat()
            if call.size is not None:
                self._take_large(call, call.size)
            elif now >= call.next_poll and call.poll is None:
                self._poll(call)
            due = min(call.next_beat, call.deadline)
            if call.poll is None and call.taking is None:
                due = min(due, call.next_poll)
            call.wait = loop.create_future()
            timer = loop.call_at(due, call.end_wait)
            try:
                await call.wait
            finally:
                timer.cancel()
        return call.outcome

    def on_wake(self, call: Call, reply: Reply | None) -> None:
        """Handles Neovim's event that a call has changed; without `reply`, requests its state."""
        if reply is not None:
            # Events arrive, so the next poll is due after the longest interval.
            call.next_poll = self._time() + POLL_EVERY
            self._apply(call, reply)
            return
        call.next_poll = 0.0
        if call.size is not None:
            return
        if call.is_followed:
            call.end_wait()
        elif call.is_parked and call.poll is None:
            self._poll(call)

    def _poll(self, call: Call) -> None:
        """Requests the state of a call."""

        def polled(reply: asyncio.Future[Reply]) -> None:
            call.poll = None
            step = POLLS[call.polls] if call.polls < len(POLLS) else POLL_EVERY
            call.next_poll = self._time() + step
            call.polls += 1
            self._on_reply(call, reply)

        call.poll = self._editor.get_result(call.id, call.progress.seq)
        call.poll.add_done_callback(polled)

    def _on_reply(self, call: Call, reply: asyncio.Future[Reply]) -> None:
        if reply.cancelled() or call.ended:
            return
        fault = reply.exception()
        if fault is None:
            self._apply(call, reply.result())
        elif isinstance(fault, EditorGoneError):
            call.end(gone())
        elif not isinstance(fault, NoAnswerError):  # without an answer the call waits for its deadline
            logger.error("call %s (%s): %s", call.id, call.request.name, fault)
            self._editor.cancel(call.id, "unreadable")  # its tool may still run
            call.end(failed(Code.EXECUTION_ERROR, PLUGIN_FAILED))
        call.end_wait()

    def _take_large(self, call: Call, size: int) -> None:
        """Fetches a large result when there is room for it; retries if Neovim does not answer."""

        async def take() -> None:
            reply = self._editor.get_result(call.id, call.progress.seq, whole=True)
            await asyncio.wait([reply])
            self._on_reply(call, reply)
            if call.outcome is not None:
                self._backpressure.note(call.outcome, size)

        if call.taking is None or call.taking.done():
            call.taking = asyncio.get_running_loop().create_task(self._backpressure.run_when_room(size, take))

    def _ask(self, call: Call, ask: Ask) -> None:
        inputs = call.next_question()
        if inputs is None:
            return

        async def asking() -> None:
            try:
                self.answer(call, inputs.seq, await ask(inputs.requests))
            except Exception:  # boundary: the tool needs an answer
                logger.exception("call %s (%s): cannot ask its client", call.id, call.request.name)
                error = {"error": {"code": INTERNAL_ERROR, "message": "the client could not be asked"}}
                self.answer(call, inputs.seq, dict.fromkeys(inputs.requests, error))

        call.asking = asyncio.get_running_loop().create_task(asking())

    def answer(self, call: Call, seq: int, answers: dict[str, Any]) -> None:
        """Passes the client's answers to Neovim."""
        answers = {key: answer if fits(answer) else _TOO_MANY_VALUES for key, answer in answers.items()}
        # Without a reply, Neovim may still have the answers; polls show when the call continues.
        reply = self._editor.answer(call.id, seq, answers)
        reply.add_done_callback(lambda reply: self._on_reply(call, reply))

    def _apply(self, call: Call, reply: Reply) -> None:
        """Applies a reply of Neovim to a call."""
        call.take(reply)
        if call.is_parked and call.ended:
            self._ended_parked(call)

    def _give_up(self, call: Call) -> Outcome:
        """Ends a call after its deadline: Neovim is blocked, or there is no room for its large result."""
        if call.size is not None and self._backpressure.held:
            self._editor.cancel(call.id, "unreadable")
            text = (
                f"the tool has run, but its result of {call.size} bytes cannot be sent: unread answers"
                f" of other clients use the limit of {self._backpressure.limit} bytes;"
                " request less at a time, or try again later"
            )
            return call.end(failed(Code.BUSY, text))
        self._editor.cancel(call.id, "timeout")
        text = "the tool's timeout has passed and Neovim does not answer; the tool is being cancelled"
        return call.end(Outcome("timed_out", error=ToolError(Code.TIMEOUT, text)))
