"""Runs tool calls: start, deadline, wake and poll, progress, cancel. Each call ends exactly once.

A call may ask its client for inputs: with `Ask` while `run` waits, or by ending `run_attempt` as `Parked`,
after which the client sends the request again with its answers (`resume`, parking.py).

Most calls end with Neovim's reply to `execute`, without a task or timer; waiting.py has the others.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Coroutine
from typing import Any
from weakref import WeakKeyDictionary

from ..errors import Code, EditorError, EditorGoneError, LuaError, NoAnswerError
from ..neovim.nvim import NvimEditor
from ..values import CallRequest, Outcome, Parked, Reply, Settings, ToolError
from .backpressure import Backpressure
from .blocked_editor import Admission
from .call import PLUGIN_FAILED, Ask, Call, NullObserver, Observer, failed, gone
from .parking import Parking
from .waiting import Follower

logger = logging.getLogger(__name__)

START_WITHIN = 2.0
"""Seconds in which a call must start; otherwise it fails with `editor_blocked`."""
START_GRACE = 0.1
"""Seconds after that for the answer to arrive."""
ACKNOWLEDGE_WITHIN = 0.25
"""Maximum seconds until an acknowledgement is sent."""
ACKNOWLEDGE_TOGETHER = 64
"""Maximum number of acknowledgements in one message."""
ACKNOWLEDGE_AT_ONCE = 64 * 1024
"""Results with more characters are acknowledged at once, so that Neovim can drop them."""


class Acknowledgements:
    """Unsent acknowledgements of results."""

    def __init__(self, editor: NvimEditor) -> None:
        self._editor = editor
        self._ids: list[str] = []
        self._timer: asyncio.TimerHandle | None = None

    def add(self, call_id: str, size: int = 0) -> None:
        """Adds the acknowledgement of a result with `size` characters."""
        self._ids.append(call_id)
        if size > ACKNOWLEDGE_AT_ONCE or len(self._ids) >= ACKNOWLEDGE_TOGETHER:
            self.flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(ACKNOWLEDGE_WITHIN, self.flush)

    def flush(self) -> None:
        """Sends the unsent acknowledgements."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._ids:
            ids, self._ids = self._ids, []
            self._editor.acknowledge(ids)


class Calls:
    """All calls in flight of this bridge; receives Neovim's events.

    Attributes:
        loop: the event loop; to get the running one costs a system call.
        answer_within: seconds for a client to answer a question that needs neither its user nor a model.
        backpressure: limits the memory of results and answers.
    """

    def __init__(self, editor: NvimEditor, settings: Settings, boot: str | None = None) -> None:
        self._editor = editor
        self.loop = asyncio.get_running_loop()
        self._time = self.loop.time
        self._limit = settings.limits.calls
        self._timeout = settings.tool_timeout
        self.answer_within = settings.limits.answer / 1000
        # Makes call ids unique among all bridges of this Neovim.
        self._boot = boot or secrets.token_hex(6)
        self._count = 0
        self._calls: dict[str, Call] = {}
        self._reasons: WeakKeyDictionary[asyncio.Task[Any], str] = WeakKeyDictionary()
        self._acks = Acknowledgements(editor)
        self._admission = Admission(editor)
        self._stopped: Outcome | None = None
        self.backpressure = Backpressure()
        self._follower = Follower(editor, self._time, self.backpressure, self._ended_parked)
        limits = settings.limits
        self._parking = Parking(editor, limits.parked / 1000, limits.result_ttl / 1000, self._remove)
        # `note` already counts the kept outcomes.
        self.backpressure.watch(lambda: 0, self._parking.free)
        for event, callback in (("started", self.started), ("wake", self.wake), ("log", self.log)):
            editor.on(event, callback)
        editor.closed.add_done_callback(lambda _: self.stop("editor_gone"))

    @property
    def in_flight(self) -> int:
        """Number of calls that have not ended."""
        return len(self._calls)

    def set_cancel_reason(self, task: asyncio.Task[Any], reason: str) -> None:
        """Sets the reason for the coming cancellation of `task`; the default is `disconnected`."""
        self._reasons[task] = reason

    def cancel_like_current(self, task: asyncio.Task[Any]) -> None:
        """Cancels `task` for the reason of the current task's cancellation."""
        current = asyncio.current_task(self.loop)
        self._reasons[task] = (
            "disconnected" if current is None else self._reasons.pop(current, "disconnected")
        )
        task.cancel()

    def detach(self, task: asyncio.Task[Any], call_id: str | None) -> Call | None:
        """Returns the call with `call_id`, or of `task` if that is None; its client gets no more progress."""
        known = self._calls.values() if call_id is None else filter(None, [self._calls.get(call_id)])
        call = next((call for call in known if call_id is not None or call.task is task), None)
        if call is not None:
            call.observer = NullObserver()
        return call

    def cancel_parked(self, call: Call, reason: str) -> None:
        """Ends a parked call."""
        self._editor.cancel(call.id, reason)
        call.end(Outcome("cancelled", error=ToolError(Code.CANCELLED, f"cancelled ({reason})")))
        self._remove(call)

    def awaits_approval(self, task: asyncio.Task[Any]) -> bool:
        """Whether the call that `task` waits for needs the user's approval."""
        calls = self._calls.values()
        return any(
            call.task is task and not call.ended and call.state == "waiting_approval" for call in calls
        )

    def run(
        self, request: CallRequest, observer: Observer, ask: Ask | None = None
    ) -> Coroutine[Any, Any, Outcome]:
        """Runs one call to its end.

        Args:
            request: the request.
            observer: gets progress and log messages of the call, on the event loop, before the outcome.
            ask: asks the client for inputs; None = questions of the tool fail.

        Returns:
            The outcome, also of a failed tool. Cancelling the task cancels the tool.
        """
        attempt: Any = self._attempt(request, observer, ask or _cannot_ask)
        outcome: Coroutine[Any, Any, Outcome] = attempt  # only a call without `ask` is parked
        return outcome

    def run_attempt(self, request: CallRequest, observer: Observer) -> Coroutine[Any, Any, Outcome | Parked]:
        """Runs one call until it ends or asks its client a question."""
        return self._attempt(request, observer, None)

    async def resume(
        self, task_id: str, seq: int, answers: dict[str, Any], observer: Observer
    ) -> Outcome | Parked | None:
        """Continues a parked call with the client's answers.

        A question is answered once. If `seq` is not that of the open question, or an answer is missing, the
        open question is returned again. If no question is open, the outcome or next question is awaited.

        Args:
            task_id: the call's id, from `Parked`.
            seq: number of the answered question.
            answers: `{key: {"result": …}}`; unknown keys are ignored.
            observer: gets progress and log messages from now on.

        Returns:
            The outcome or the next question; None when there is no such call.
        """
        call = self._calls.get(task_id)
        if call is None:
            return self._parking.kept(task_id)
        open_ = call.inputs
        if open_ is not None:
            if open_.seq != seq or not open_.requests.keys() <= answers.keys():
                return self._parking.park(call, open_) if call.is_parked else Parked(task_id, open_)
            call.next_question()
            self._follower.answer(call, seq, {key: answers[key] for key in open_.requests})
        call.observer = observer
        return await self._parking.rejoin(
            call, lambda: self._attempt(call.request, observer, call.ask, call), self._reasons
        )

    async def _attempt(
        self, request: CallRequest, observer: Observer, ask: Ask | None, parked: Call | None = None
    ) -> Outcome | Parked:
        """Runs a new call, or continues a parked one, until its end or its next question."""
        if parked is not None:
            call = parked
        elif self._stopped is not None:
            return self._stopped
        elif len(self._calls) >= self._limit:
            return failed(Code.BUSY, f"{self._limit} calls are in flight; try again when some have ended")
        else:
            self._count += 1
            call = Call(f"{self._boot}-{self._count}", request, observer, self._time, ask)
            self._calls[call.id] = call
        call.task = asyncio.current_task(self.loop)
        try:
            outcome = await (self._run(call) if parked is None else self._follower.follow(call))
            if outcome is None:
                assert call.inputs is not None  # noqa: S101 - None means an open question
                return self._parking.park(call, call.inputs)
            outcome = call.outcome or call.end(outcome)
            if not outcome.text.isascii() and not _is_text(outcome):
                outcome = await self._explain(call)
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
        except EditorError as fault:
            logger.error("call %s (%s): %s", call.id, call.request.name, fault)
            self._editor.cancel(call.id, "unreadable")  # its tool may still run
            # Lua errors may contain paths and values: they are logged, not sent to the client.
            text = PLUGIN_FAILED if isinstance(fault, LuaError) else str(fault)
            return call.end(failed(Code.EXECUTION_ERROR, text))
        finally:
            if not call.is_parked:
                self._remove(call)

    def _ended_parked(self, call: Call) -> None:
        if call.outcome is not None and not _is_text(call.outcome):
            # Unlike in `_explain`, the field is not named: Neovim may have dropped the value.
            call.correct(failed(Code.NOT_SERIALIZABLE, "result: bytes that are not UTF-8"))
        self._acks.add(call.id)
        self._remove(call)

    def _remove(self, call: Call) -> None:
        del self._calls[call.id]
        if call.is_followed or call.was_parked:  # otherwise nothing was started
            self._parking.keep(call)
            call.stop()

    def stop(self, reason: str) -> None:
        """Ends all calls now, and later ones when they start.

        Args:
            reason: `editor_gone`, or a reason to pass to Neovim: `shutdown`, `disconnected`.
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
            if call.is_parked:
                self._remove(call)
        self._acks.flush()

    def started(self, task_id: str, deadline: float | None) -> None:
        """Handles the event that a tool is about to run."""
        call = self._calls.get(task_id)
        if call is not None:
            call.start(deadline)

    def wake(self, task_id: str, reply: Reply | None) -> None:
        """Handles a change of a call; without `reply`, requests its state."""
        call = self._calls.get(task_id)
        if call is not None:
            self._follower.on_wake(call, reply)
        elif reply is not None and reply.done and task_id.startswith(self._boot):
            logger.debug("call %s ended after its client had stopped waiting", task_id)
            self._acks.add(task_id)

    def log(self, task_id: str, level: str, data: Any) -> None:
        """Passes on a log message of a tool."""
        call = self._calls.get(task_id)
        if call is not None:
            call.observer.log(level, data)

    async def _run(self, call: Call) -> Outcome | None:
        editor = self._editor
        now = self._time()
        start_by = now + START_WITHIN
        if not self._admission.is_open(now):
            refused = await self._admission.admit(call, start_by)
            if refused is not None:
                return refused
        reply = editor.execute(call.id, call.request, start_by, self._timeout, start_by + START_GRACE)
        call.state = "sent"
        call.wait = reply
        try:
            answer = await reply
        except NoAnswerError:
            answer = None
        if answer is not None:
            call.take(answer)
        elif call.silent:
            # `start_by` has passed: Neovim will refuse the call when it reads it.
            editor.cancel(call.id, "blocked")
            refused = await self._admission.refuse_silent()
            if call.silent:
                return refused
        # A `wake` event or `stop` may have ended the call before its reply came.
        return call.outcome if call.outcome is not None else await self._follower.follow(call)

    async def _explain(self, call: Call) -> Outcome:
        """Replaces a result that is not UTF-8 by an error with the path of the field, which Neovim finds."""
        try:
            path, message = await self._editor.explain(call.id)
        except EditorError as fault:
            path, message = "result", f"bytes that are not UTF-8 ({fault})"
        text = message if message.startswith(path) else f"{path}: {message}"
        return call.correct(failed(Code.NOT_SERIALIZABLE, text))


def _is_text(outcome: Outcome) -> bool:
    """Whether the text of an outcome can be encoded as UTF-8."""
    try:
        outcome.text.encode()
    except UnicodeEncodeError:
        return False
    return True


async def _cannot_ask(requests: dict[str, Any]) -> dict[str, Any]:
    error = {"code": -32601, "message": "this client cannot answer questions"}
    return {key: {"error": error} for key in requests}
