"""Waits for a started call: one wait per turn, until a wake-up, poll, heartbeat or the deadline."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Coroutine
from typing import Any

from ..errors import Code, EditorGoneError, NoAnswerError
from ..jsonrpc import INTERNAL_ERROR, INVALID_PARAMS
from ..neovim import Editor
from ..values import Outcome, Reply, ToolError
from .arguments import MAX_VALUES, fits
from .backpressure import Backpressure
from .call import HEARTBEAT, Ask, Call
from .outcomes import failed, gone

POLLS, POLL_EVERY = (0.1, 0.2, 0.4, 0.8), 1.0
"""Seconds before the first fallback polls, and between those after them."""

_TOO_MANY = {
    "error": {
        "code": INVALID_PARAMS,
        "message": f"its answer has more than {MAX_VALUES} values, which is none",
    }
}

logger = logging.getLogger(__name__)


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


class Follower:
    """See the head of this file.

    Args:
        editor: asked how calls are.
        time: the event loop's.
        room: for large results.
        ended_away: told of a call that ends while its client is away.
    """

    def __init__(
        self,
        editor: Editor,
        time: Callable[[], float],
        room: Backpressure,
        ended_away: Callable[[Call], None],
    ) -> None:
        self._editor = editor
        self._time = time
        self._room = room
        self._ended_away = ended_away

    async def follow(self, call: Call) -> Outcome | None:
        """Waits for the end of a call that goes on; None = its client has to come back with answers."""
        loop = asyncio.get_running_loop()
        now = self._time()
        following = _of(call)
        following.active = True
        if following.next_poll == math.inf:
            following.next_poll = now + POLLS[0]
        call.next_beat = max(call.next_beat, now + HEARTBEAT)
        while call.outcome is None:
            if call.inputs is not None:
                if call.ask is None:
                    following.active = False
                    return None
                self._ask(call, following, call.ask)
            now = self._time()
            if now >= call.deadline:
                return self._net(call)
            if now >= call.next_beat:
                call.beat()
            if call.size is not None:
                self._take_large(call, following, call.size)
            elif now >= following.next_poll and following.poll is None:
                self._poll(call, following)
            due = min(call.next_beat, call.deadline)
            if following.poll is None and following.taking is None:
                due = min(due, following.next_poll)
            call.wait = loop.create_future()
            timer = loop.call_at(due, call.ring)
            try:
                await call.wait
            finally:
                timer.cancel()
        return call.outcome

    def woken(self, call: Call, reply: Reply | None) -> None:
        """The editor says that something has happened to a call; without `reply` it is asked what."""
        following = _of(call)
        if reply is not None:
            # Wakes arrive, so the next poll is not due before the longest step from now.
            following.next_poll = self._time() + POLL_EVERY
            self._take(call, reply)
            return
        following.next_poll = 0.0
        if call.size is not None:
            return
        if following.active:
            call.ring()
        elif call.away and following.poll is None:
            self._poll(call, following)

    def _poll(self, call: Call, following: Following) -> None:
        """Asks how the call is."""

        def polled(reply: asyncio.Future[Reply]) -> None:
            following.poll = None
            step = POLLS[following.polls] if following.polls < len(POLLS) else POLL_EVERY
            following.next_poll = self._time() + step
            following.polls += 1
            self._heard(call, reply)

        following.poll = self._editor.get_result(call.id, call.progress.seq)
        following.poll.add_done_callback(polled)

    def _heard(self, call: Call, reply: asyncio.Future[Reply]) -> None:
        if reply.cancelled() or call.ended:
            return
        fault = reply.exception()
        if fault is None:
            self._take(call, reply.result())
        elif isinstance(fault, EditorGoneError):
            call.end(gone())
        elif not isinstance(fault, NoAnswerError):  # silence: the call waits for its own deadline
            logger.error("call %s (%s): %s", call.id, call.request.name, fault)
            self._editor.cancel(call.id, "unreadable")  # its tool may run on
            call.end(failed(Code.EXECUTION_ERROR, "the plugin failed inside Neovim; see its log"))
        call.ring()

    def _take_large(self, call: Call, following: Following, size: int) -> None:
        """Asks for a large result when there is room for it, again if the editor is silent."""

        async def take() -> None:
            reply = self._editor.get_result(call.id, call.progress.seq, whole=True)
            await asyncio.wait([reply])
            self._heard(call, reply)
            if call.outcome is not None:
                self._room.note(call.outcome, size)

        if following.taking is None or following.taking.done():
            following.taking = asyncio.get_running_loop().create_task(self._room.turn(size, take))

    # Inputs of the client

    def _ask(self, call: Call, following: Following, ask: Ask) -> None:
        inputs = call.take_question()
        if inputs is None:
            return

        async def asking() -> None:
            try:
                self.answer(call, inputs.seq, await ask(inputs.requests))
            except Exception:  # boundary: whatever fails here, the tool waits for an answer
                logger.exception("call %s (%s): its client could not be asked", call.id, call.request.name)
                error = {"error": {"code": INTERNAL_ERROR, "message": "the client could not be asked"}}
                self.answer(call, inputs.seq, dict.fromkeys(inputs.requests, error))

        following.start_asking(asking())

    def answer(self, call: Call, seq: int, answers: dict[str, Any]) -> None:
        """Hands the client's answers on."""
        answers = {key: answer if fits(answer) else _TOO_MANY for key, answer in answers.items()}
        # An editor that is silent for long has the answers nevertheless; the polls tell when it went on.
        reply = self._editor.answer(call.id, seq, answers)
        reply.add_done_callback(lambda reply: self._heard(call, reply))

    def _take(self, call: Call, reply: Reply) -> None:
        """Learns what the editor said about a call."""
        call.take(reply)
        if call.away and call.ended:
            self._ended_away(call)

    def _net(self, call: Call) -> Outcome:
        """The editor should have ended the call itself; it is busy or dead. Or nobody reads large results."""
        if call.size is not None and self._room.held:
            self._editor.cancel(call.id, "unreadable")
            text = (
                f"the tool has run, but its result of {call.size} bytes cannot be sent now: answers to"
                f" clients that do not read them take all of the {self._room.limit} bytes that there are;"
                " ask for less at a time, or later"
            )
            return call.end(failed(Code.BUSY, text))
        self._editor.cancel(call.id, "timeout")
        text = "the tool's time is over and Neovim does not answer; it is told to cancel the tool"
        return call.end(Outcome("timed_out", error=ToolError(Code.TIMEOUT, text)))


def _of(call: Call) -> Following:
    if call.following is None:
        call.following = Following()
    return call.following
