"""Runs tool calls: start_by, deadline, wake and poll, progress, cancel. Each call ends exactly once.

Receives `CallRequest`s from the server and the editor's events (`started`, `wake`, `log`).
Sends the verbs of `Editor`, and progress, log and one `Outcome` to whoever called `run`.
Does not know about: MCP, HTTP, msgpack, sockets.

A call may ask its client for inputs: over `Ask` while `run` waits, or, after `run_leg`, by ending that leg as
`Parked`; then the client comes back with its answers (`resume`, in parking.py).

The way that most calls go: one request, answered in its own reply; no task, no timer. Else waiting.py.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Coroutine
from typing import Any
from weakref import WeakKeyDictionary

from ..errors import Code, EditorError, EditorGoneError, LuaError, NoAnswerError
from ..neovim import Editor
from ..values import CallRequest, Outcome, Parked, Reply, Settings, ToolError
from .admission import Admission
from .backpressure import Backpressure
from .call import Ask, Call, Observer
from .outcomes import failed, gone
from .parking import Parking
from .waiting import Follower

logger = logging.getLogger(__name__)

START_WITHIN = 2.0
"""Seconds in which a call must start, or the client hears `editor_blocked`."""
START_GRACE = 0.1
"""Seconds after that for the answer to arrive."""
ACKNOWLEDGE_WITHIN = 0.25
"""Seconds until an acknowledgement goes out by itself, when no call took it along."""
ACKNOWLEDGE_AT_ONCE = 64 * 1024
"""Characters of a result beyond which the editor may forget it at once."""


class Acknowledgements:
    """Those that are still to be sent to one editor."""

    def __init__(self, editor: Editor) -> None:
        self._editor = editor
        self._ids: list[str] = []
        self._timer: asyncio.TimerHandle | None = None

    def add(self, call_id: str, size: int = 0) -> None:
        """A result of that many characters has arrived."""
        self._ids.append(call_id)
        if size > ACKNOWLEDGE_AT_ONCE:
            self.flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(ACKNOWLEDGE_WITHIN, self.flush)

    def take(self) -> list[str]:
        """Hands over what is to be sent, to whoever sends something anyway."""
        ids, self._ids = self._ids, []
        return ids

    def put_back(self, ids: list[str]) -> None:
        """Takes ids again that were handed over and could not be sent."""
        for call_id in ids:
            self.add(call_id)

    def flush(self) -> None:
        """Sends what is left."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._ids:
            self._editor.acknowledge(self.take())


class Calls:
    """All calls in flight of this bridge; listens to the editor.

    Attributes:
        loop: that all of them run on. (To ask for the running one costs a system call.)
        answer_within: seconds for a client to answer what neither a person nor a model has to.
        room: for large results; whoever holds answers for clients is to be watched by it.
    """

    def __init__(
        self,
        editor: Editor,
        settings: Settings,
        boot: str | None = None,
    ) -> None:
        self._editor = editor
        self.loop = asyncio.get_running_loop()
        self._time = self.loop.time
        self._limit = settings.limits.calls
        self._timeout = settings.tool_timeout
        self.answer_within = settings.limits.answer / 1000
        # Never repeated, not by the next bridge of this editor either.
        self._boot = boot or secrets.token_hex(6)
        self._count = 0
        self._calls: dict[str, Call] = {}
        self._reasons: WeakKeyDictionary[asyncio.Task[Any], str] = WeakKeyDictionary()
        self._acks = Acknowledgements(editor)
        self._admission = Admission(editor)
        self._stopped: Outcome | None = None
        self.backpressure = Backpressure()
        self._follower = Follower(editor, self._time, self.backpressure, self._ended_away)
        limits = settings.limits
        self._parking = Parking(editor, limits.parked / 1000, limits.result_ttl / 1000, self._remove)
        # What it keeps are results, which count by themselves.
        self.backpressure.watch(lambda: 0, self._parking.ease)
        editor.set_listener(self)
        editor.closed.add_done_callback(lambda _: self.stop("editor_gone"))

    @property
    def in_flight(self) -> int:
        """How many calls have not ended."""
        return len(self._calls)

    def cancel_reason(self, task: asyncio.Task[Any], reason: str) -> None:
        """Says why `task`, which sits in `run`, is about to be cancelled; without it: `disconnected`."""
        self._reasons[task] = reason

    def awaits_approval(self, task: asyncio.Task[Any]) -> bool:
        """Whether a person is asked whether the call may run that `task` waits for."""
        calls = self._calls.values()
        return any(
            call.task is task and not call.ended and call.state == "waiting_approval" for call in calls
        )

    async def run(self, request: CallRequest, observer: Observer, ask: Ask | None = None) -> Outcome:
        """Runs one call to its end.

        Args:
            request: what to call.
            observer: gets progress and log of this call, on the event loop, before the outcome.
            ask: asks the client for inputs; without it the tool is told that it cannot be asked.

        Returns:
            How it ended; everything at tool level is a value. Cancelling the task cancels the tool.
        """
        call = self._enter(request, observer, ask or _refuse)
        outcome = await self._leg(call, self._run(call)) if isinstance(call, Call) else call
        assert isinstance(outcome, Outcome)  # noqa: S101 - only a call without `ask` is parked
        return outcome

    async def run_leg(self, request: CallRequest, observer: Observer) -> Outcome | Parked:
        """Runs one call to its end, or until it asks its client for something."""
        call = self._enter(request, observer, None)
        return await self._leg(call, self._run(call)) if isinstance(call, Call) else call

    async def resume(
        self, task_id: str, seq: int, answers: dict[str, Any], observer: Observer
    ) -> Outcome | Parked | None:
        """The client of a parked call is back.

        A question is answered once: when `seq` is not that of the open one, or an answer is missing, this
        only waits for what comes next, or gives the open one again.

        Args:
            task_id: of `Parked`.
            seq: of the question that the client has answered.
            answers: `{key: {"result": …}}`; what was not asked for is left out.
            observer: gets progress and log from now on.

        Returns:
            None when there is no such call (any more).
        """
        call = self._calls.get(task_id)
        if call is None:
            return self._parking.kept(task_id)
        open_ = call.inputs
        if open_ is not None:
            if open_.seq != seq or not open_.requests.keys() <= answers.keys():
                return self._parking.park(call, open_) if call.away else Parked(task_id, open_)
            call.take_question()
            self._follower.answer(call, seq, {key: answers[key] for key in open_.requests})
        call.observer = observer
        return await self._parking.rejoin(
            call, lambda: self._leg(call, self._follower.follow(call)), self._reasons
        )

    def _enter(self, request: CallRequest, observer: Observer, ask: Ask | None) -> Call | Outcome:
        """A new call in flight, or why there is none."""
        if self._stopped is not None:
            return self._stopped
        if len(self._calls) >= self._limit:
            return failed(Code.BUSY, f"{self._limit} calls are in flight; try again when some have ended")
        self._count += 1
        call = Call(f"{self._boot}-{self._count}", request, observer, self._time, ask)
        self._calls[call.id] = call
        return call

    async def _leg(self, call: Call, work: Coroutine[Any, Any, Outcome | None]) -> Outcome | Parked:
        """From a client's request to its answer: the end of the call, or a question."""
        call.task = asyncio.current_task(self.loop)
        try:
            outcome = await work
            if outcome is None:
                assert call.inputs is not None  # noqa: S101 - that is what None means
                return self._parking.park(call, call.inputs)
            outcome = call.outcome or call.end(outcome)
            if not outcome.text.isascii() and not _is_text(outcome):
                outcome = await self._explained(call)
            if call.answered and self._stopped is None:
                self._acks.add(call.id, len(outcome.text))
            return outcome
        except asyncio.CancelledError:
            if not call.ended:
                reason = "disconnected" if call.task is None else self._reasons.pop(call.task, "disconnected")
                if call.sent:
                    self._editor.cancel(call.id, reason)
                call.end(Outcome("cancelled", error=ToolError(Code.CANCELLED, f"cancelled ({reason})")))
            raise
        except EditorGoneError:
            return call.end(gone())
        except LuaError as fault:
            # What Lua threw may hold paths and values: it goes to the log, not to the client.
            logger.error("call %s (%s): %s", call.id, call.request.name, fault)
            self._editor.cancel(call.id, "unreadable")  # its tool may run all the same
            return call.end(failed(Code.EXECUTION_ERROR, "the plugin failed inside Neovim; see its log"))
        except EditorError as fault:
            logger.error("call %s (%s): %s", call.id, call.request.name, fault)
            self._editor.cancel(call.id, "unreadable")
            return call.end(failed(Code.EXECUTION_ERROR, str(fault)))
        finally:
            if call.stay is None or not call.away:
                self._remove(call)

    def _ended_away(self, call: Call) -> None:
        if call.outcome is not None and not _is_text(call.outcome):
            # Where they stand nobody asks: the editor may forget the value.
            call.correct(failed(Code.NOT_SERIALIZABLE, "result: bytes that are not UTF-8"))
        self._acks.add(call.id)
        self._parking.leave(call)

    def _remove(self, call: Call) -> None:
        del self._calls[call.id]
        if call.stay is not None:
            self._parking.keep(call)
        if call.following is not None:
            call.following.stop()

    def stop(self, reason: str) -> None:
        """Ends every call now, and those to come at once.

        Args:
            reason: `editor_gone`, or a reason for `cancel_task`: `shutdown`, `disconnected`.
        """
        if self._stopped is not None:
            return
        if reason == "editor_gone":
            self._stopped = gone()
        else:
            closed = reason == "disconnected"
            why = "its client was closed" if closed else f"the MCP bridge is stopping ({reason}); try again"
            error = ToolError(Code.CANCELLED, why)
            self._stopped = Outcome("cancelled", error=error)
        for call in list(self._calls.values()):
            if call.ended:
                continue
            if reason != "editor_gone" and call.sent:
                self._editor.cancel(call.id, reason)
            call.end(self._stopped)
            if call.away:
                self._parking.leave(call)
        self._acks.flush()

    # EditorListener

    def started(self, task_id: str, deadline: float | None) -> None:
        """The tool is about to run."""
        call = self._calls.get(task_id)
        if call is not None:
            call.start(deadline)

    def wake(self, task_id: str, reply: Reply | None) -> None:
        """Something happened to a call; without `reply` it is asked for."""
        call = self._calls.get(task_id)
        if call is not None:
            self._follower.woken(call, reply)
        elif reply is not None and reply.done and task_id.startswith(self._boot):
            logger.debug("call %s ended after nobody waited any more", task_id)
            self._acks.add(task_id)

    def log(self, task_id: str, level: str, data: Any) -> None:
        """The tool logs for its client."""
        call = self._calls.get(task_id)
        if call is not None:
            call.observer.log(level, data)

    # Before the start

    async def _run(self, call: Call) -> Outcome | None:
        editor = self._editor
        now = self._time()
        start_by = now + START_WITHIN
        if not self._admission.open(now):
            refused = await self._admission.admit(call, start_by)
            if refused is not None:
                return refused
        acks = self._acks.take()
        reply = editor.execute(call.id, call.request, start_by, self._timeout, acks, start_by + START_GRACE)
        call.send()
        call.wait = reply
        try:
            answer = await reply
        except NoAnswerError:
            answer = None
        except EditorGoneError:
            raise
        except EditorError:
            self._acks.put_back(acks)  # it may never have been sent; to acknowledge twice does no harm
            raise
        if answer is not None:
            call.take(answer)
        elif call.silent:
            # `start_by` has passed without a sign: the editor will refuse the call when it gets to it.
            editor.cancel(call.id, "blocked")
            refused = await self._admission.name_block()
            if call.silent:
                return refused
        # A wake-up or `stop` may have ended the call before its reply came.
        return call.outcome if call.outcome is not None else await self._follower.follow(call)

    # After the end

    async def _explained(self, call: Call) -> Outcome:
        """Refuses text that is not UTF-8, naming the place: the editor still holds the value."""
        try:
            path, message = await self._editor.explain(call.id)
        except EditorError as fault:
            path, message = "result", f"bytes that are not UTF-8 ({fault})"
        text = message if message.startswith(path) else f"{path}: {message}"
        return call.correct(failed(Code.NOT_SERIALIZABLE, text))


def _is_text(outcome: Outcome) -> bool:
    """Can its text be written as UTF-8?"""
    try:
        outcome.text.encode()
    except UnicodeEncodeError:
        return False
    return True


async def _refuse(requests: dict[str, Any]) -> dict[str, Any]:
    error = {"code": -32601, "message": "this client cannot be asked here"}
    return {key: {"error": error} for key in requests}
