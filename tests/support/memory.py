"""An editor in memory with the interface and the rules of `NvimEditor`; tools are Python callables."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from mcp_tools_nvim.errors import Code, EditorGoneError, NoAnswerError
from mcp_tools_nvim.values import (
    LARGE,
    CallRequest,
    CallState,
    FieldError,
    Hello,
    HelloInfo,
    Inputs,
    Kind,
    Listing,
    Mode,
    Outcome,
    Progress,
    Reply,
    Settings,
    ToolError,
    View,
)

from .memory_kinds import KEYS, Function, Offers, Tool, outcome_of

T = TypeVar("T")


class FailError(Exception):
    """A tool's own failure."""

    def __init__(
        self, message: str, code: Code = Code.TOOL_ERROR, errors: tuple[FieldError, ...] = ()
    ) -> None:
        super().__init__(message)
        self.error = ToolError(code, message, errors)


@dataclass(slots=True)
class ToolContext:
    """The context of a call: id, progress, log, questions, and the reason of a cancel."""

    id: str
    request: CallRequest
    tool: Tool
    editor: MemoryEditor
    state: CallState = "running"
    deadline: float | None = None
    latest: Progress | None = None
    outcome: Outcome | None = None
    cancel_reason: str | None = None
    task: asyncio.Task[None] | None = None
    timer: asyncio.TimerHandle | None = None
    answered: bool = False
    inputs: Inputs | None = None
    asked: int = 0
    withdrawn: int = 0
    received: asyncio.Future[dict[str, Any]] | None = None

    @property
    def arguments(self) -> dict[str, Any]:
        given = self.tool.arguments
        return self.request.arguments if given is None else given

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        seq = self.latest.seq + 1 if self.latest else 1
        self.latest = Progress(seq, done, total, message)
        self.editor.emit_wake(self)

    async def ask(self, **requests: Any) -> dict[str, Any]:
        """Asks the client; the timeout of the tool is stopped meanwhile."""
        loop = asyncio.get_running_loop()
        left = None if self.deadline is None else self.deadline - loop.time()
        if self.timer is not None:
            self.timer.cancel()
        self.asked += 1
        self.state, self.deadline, self.inputs = "waiting_input", None, Inputs(self.asked, requests)
        self.received = loop.create_future()
        self.editor.emit_wake(self)
        answers = await self.received
        if left is not None:
            self.editor.limit(self, left)
        return answers

    def withdraw(self, answers: dict[str, Any]) -> None:
        """The question was answered elsewhere."""
        self.state, self.inputs, self.withdrawn = "running", None, self.asked
        self.editor.emit_wake(self)
        self.received.set_result(answers)

    def log(self, level: str, data: Any) -> None:
        self.editor.emit("log", self.id, level, data)

    def reply(self, *, whole: bool = False) -> Reply:
        if self.outcome is not None:
            size = len(self.outcome.text)
            if size > LARGE and not whole:
                return Reply(False, progress=self.latest, size=size)
            return Reply(True, self.outcome, progress=self.latest)
        return Reply(
            False,
            state=self.state,
            deadline=self.deadline,
            progress=self.latest,
            inputs=self.inputs,
            withdrawn=self.withdrawn,
        )


@dataclass(eq=False)
class MemoryEditor:
    """Create it inside a running loop.

    Attributes:
        silent: answers nothing, like a busy main thread.
        blocking_mode: a mode such as `"r"`: only `mode()` is answered, like at a prompt.
        lose_wakes: sends no `wake`; `lose_started`: no `started`.
        requests: every request as `(verb, monotonic seconds)`.
        cancels, acknowledged, reports: every notification.
    """

    settings: Settings = field(default_factory=Settings)
    silent: bool = False
    blocking_mode: str | None = None
    lose_wakes: bool = False
    lose_started: bool = False
    congested: bool = False
    new_token: str | None = None

    def __post_init__(self) -> None:
        self.boot = "memory"
        self._time = asyncio.get_running_loop().time
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.last_heard = self._time()
        self._callbacks: dict[str, list[Callable[..., None]]] = {}
        self.offers = Offers()
        self.calls: dict[str, ToolContext] = {}
        self.revision = 1
        self.requests: list[tuple[str, float]] = []
        self.cancels: list[tuple[str, str]] = []
        self.acknowledged: list[str] = []
        self.agent_events: list[tuple[str, dict[str, Any]]] = []
        self.reports: list[tuple[str, dict[str, Any]]] = []
        self.received: list[tuple[str, int, dict[str, Any]]] = []
        self._queue: list[Callable[[], None]] = []
        self._waiting: set[asyncio.Future[Any]] = set()
        self._refused: set[str] = set()

    # For tests

    def add_tool(
        self,
        name: str,
        function: Function,
        *,
        timeout: int | None = None,
        approval: Callable[[], asyncio.Future[bool]] | None = None,
        agent: str | None = None,
        **definition: Any,
    ) -> None:
        """Registers a tool; `definition` has more MCP keys (`description`, `inputSchema`, …)."""
        published = {
            "name": name if agent else self.settings.tool_prefix + name,
            "description": name,
            "inputSchema": {"type": "object"},
        }
        tool = Tool(name, function, published | definition, timeout, approval, agent=agent)
        self._offer("tools", tool)

    def add_resource(self, uri: str, function: Function, **definition: Any) -> None:
        """Registers a resource, or a template if its URI has `{…}`; the function returns text or bytes."""
        kind: Kind = "templates" if "{" in uri else "resources"
        published = {KEYS[kind]: uri, "name": uri} | definition
        self._offer(kind, Tool(uri, function, published))

    def add_prompt(self, name: str) -> None:
        """Registers a prompt, which can only be listed."""
        self._offer("prompts", Tool(name, lambda ctx, arguments: None, {"name": name}))

    def remove(self, kind: Kind, name: str) -> None:
        del self.offers.of[kind][name]
        self._bump(kind)

    def update(self, uri: str) -> None:
        """Reports a changed resource to its subscribers."""
        if self.offers.subscribed[uri]:
            self.emit("updated", uri)

    def recover(self) -> None:
        """Ends `silent` and `blocking_mode`, and answers queued requests in order."""
        self.silent, self.blocking_mode = False, None
        self._serve()

    def close(self) -> None:
        """Ends the editor: every request fails, every tool is cancelled."""
        if self.closed.done():
            return
        for context in self.calls.values():
            if context.task is not None:
                context.task.cancel()
            if context.timer is not None:
                context.timer.cancel()
        for future in self._waiting:
            if not future.done():
                future.set_exception(EditorGoneError("Neovim has exited"))
        self._queue.clear()
        self.closed.set_result(None)

    # Editor

    async def drain(self, until: float) -> bool:
        return not self.congested

    def hello(self, info: HelloInfo, timeout: float = 5.0) -> asyncio.Future[Hello]:
        token = self.new_token if info.port_holder == "foreign" else None
        versions = {"nvim": "0.0.0", "plugin": "0.0.0"}
        answer = Hello(self.boot, {"tools": self.revision}, versions, token, self.settings)
        return self._request("hello", lambda: answer, self._time() + timeout)

    def list(self, kind: Kind, revision: int | None, view: View | None = None) -> asyncio.Future[Listing]:
        def answer() -> Listing:
            if revision == self.revision:
                return Listing(self.revision, None)
            return Listing(self.revision, self.offers.published(kind, view.scope if view else None))

        return self._request("list", answer)

    def instructions(self, names: Sequence[str]) -> asyncio.Future[str]:
        return self._request("instructions", lambda: f"tools: {', '.join(names)}")

    def execute(
        self,
        call_id: str,
        request: CallRequest,
        start_by: float,
        timeout_ms: int,
        give_up: float | None = None,
    ) -> asyncio.Future[Reply]:
        execute = partial(self._execute, call_id, request, start_by, timeout_ms)
        return self._request("execute", execute, give_up)

    def get_result(self, task_id: str, since: int, *, whole: bool = False) -> asyncio.Future[Reply]:
        def answer() -> Reply:
            if context := self.calls.get(task_id):
                return context.reply(whole=whole)
            return Reply(True, _failed(Code.NOT_FOUND, f"no call {task_id}"))

        return self._request("get_result", answer)

    def answer(self, task_id: str, seq: int, answers: dict[str, Any]) -> asyncio.Future[Reply]:
        def take() -> Reply:
            context = self.calls.get(task_id)
            if context is None:
                return Reply(True, _failed(Code.NOT_FOUND, f"no call {task_id}"))
            open_ = context.inputs
            if context.outcome is None and context.received is not None and open_ and open_.seq == seq:
                self.received.append((task_id, seq, answers))
                context.state, context.inputs = "running", None
                context.received.set_result(answers)
            return context.reply()

        return self._request("answer", take)

    def explain(self, task_id: str) -> asyncio.Future[tuple[str, str]]:
        return self._request("explain", lambda: ("result", "bytes that are not UTF-8"))

    def mode(self, timeout: float = 2.0) -> asyncio.Future[Mode | None]:
        self.requests.append(("mode", self._time()))
        future: asyncio.Future[Mode | None] = asyncio.get_running_loop().create_future()
        if self.silent or self.closed.done():
            asyncio.get_running_loop().call_later(timeout, _settle, future, None)
        else:
            mode = Mode(self.blocking_mode or "n", self.blocking_mode is not None)
            asyncio.get_running_loop().call_soon(self._answer, future, mode)
        return future

    def cancel(self, task_id: str, reason: str) -> None:
        self.cancels.append((task_id, reason))
        self._enqueue(lambda: self._cancel(task_id, reason))

    def acknowledge(self, task_ids: Sequence[str]) -> None:
        self.requests.append(("acknowledge", self._time()))
        self._enqueue(lambda: self._forget(task_ids))

    def subscribe(self, uri: str) -> asyncio.Future[ToolError | None]:
        def answer() -> ToolError | None:
            if self.offers.resource(uri) is None:
                return ToolError(Code.NOT_FOUND, "Resource not found")
            self.offers.subscribed[uri] += 1
            return None

        return self._request("subscribe", answer)

    def unsubscribe(self, uri: str) -> None:
        self._enqueue(lambda: self.offers.subscribed.subtract([uri]))

    def report(self, kind: str, data: dict[str, Any]) -> None:
        self.reports.append((kind, data))

    def on(self, event: str, callback: Callable[..., None]) -> None:
        self._callbacks.setdefault(event, []).append(callback)

    def emit(self, event: str, *values: Any) -> None:
        """Sends an event to its callbacks."""
        for callback in self._callbacks.get(event, ()):
            callback(*values)

    def agent_event(self, event: str, data: dict[str, Any]) -> None:
        self.agent_events.append((event, data))

    # Internal

    def emit_wake(self, context: ToolContext) -> None:
        """Wakes the bridge about a pending call."""
        if not self.lose_wakes and context.answered:
            self.emit("wake", context.id, context.reply())

    def _offer(self, kind: Kind, tool: Tool) -> None:
        self.offers.of[kind][tool.name] = tool
        self._bump(kind)

    def limit(self, context: ToolContext, seconds: float) -> None:
        """Ends a call after this time."""
        context.deadline = self._time() + seconds
        outcome = Outcome("timed_out", error=ToolError(Code.TIMEOUT, "Timeout"))
        timer = asyncio.get_running_loop().call_at(context.deadline, self._end, context, outcome)
        context.timer = timer

    def _bump(self, kind: str) -> None:
        self.revision += 1
        self.emit("changed", kind, self.revision)

    def _request(self, verb: str, answer: Callable[[], T], give_up: float | None = None) -> asyncio.Future[T]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self.requests.append((verb, self._time()))
        if self.closed.done():
            future.set_exception(EditorGoneError("Neovim has exited"))
            return future
        self._waiting.add(future)
        future.add_done_callback(self._waiting.discard)
        if give_up is not None:
            timer = loop.call_at(give_up, _expire, future, verb)
            future.add_done_callback(lambda _: timer.cancel())

        def serve() -> None:
            self._answer(future, answer())

        self._enqueue(serve)
        return future

    def _answer(self, future: asyncio.Future[Any], value: Any) -> None:
        self.last_heard = self._time()
        _settle(future, value)

    def _enqueue(self, work: Callable[[], None]) -> None:
        self._queue.append(work)
        asyncio.get_running_loop().call_soon(self._serve)

    def _serve(self) -> None:
        while self._queue and not self.silent and self.blocking_mode is None:
            self._queue.pop(0)()

    def _execute(self, call_id: str, request: CallRequest, start_by: float, timeout_ms: int) -> Reply:
        if self._time() > start_by or call_id in self._refused or call_id in self.calls:
            return Reply(True, _failed(Code.EDITOR_BLOCKED, "too late to start"))
        tool = self.offers.find(request, self.settings.tool_prefix)
        if isinstance(tool, ToolError):
            return Reply(True, Outcome("failed", error=tool))
        context = self.calls[call_id] = ToolContext(call_id, request, tool, self)
        if tool.approval is not None:
            context.state = "waiting_approval"
            context.task = asyncio.get_running_loop().create_task(self._approve(context, timeout_ms))
        else:
            self._start(context, timeout_ms)
        context.answered = True
        return context.reply()

    async def _approve(self, context: ToolContext, timeout_ms: int) -> None:
        if context.tool.approval is None or await context.tool.approval():
            self._start(context, timeout_ms)
        else:
            self._end(context, _failed(Code.ACCESS_DENIED, "denied"))

    def _start(self, context: ToolContext, timeout_ms: int) -> None:
        loop = asyncio.get_running_loop()
        limit = timeout_ms if context.tool.timeout is None else context.tool.timeout
        context.state = "running"
        if limit:
            self.limit(context, limit / 1000)
        if not self.lose_started:
            self.emit("started", context.id, context.deadline)
        if inspect.iscoroutinefunction(context.tool.function):
            context.task = loop.create_task(self._run(context))
            return
        try:
            outcome = self._outcome(context, context.tool.function(context, context.arguments))
        except FailError as fail:
            outcome = Outcome("failed", error=fail.error)
        self._end(context, outcome)

    async def _run(self, context: ToolContext) -> None:
        try:
            value = await context.tool.function(context, context.arguments)
        except FailError as fail:
            self._end(context, Outcome("failed", error=fail.error))
            return
        self._end(context, self._outcome(context, value))

    def _outcome(self, context: ToolContext, value: Any) -> Outcome:
        return outcome_of(context.request.kind, context.tool, context.request.name, value)

    def _end(self, context: ToolContext, outcome: Outcome) -> None:
        if context.outcome is not None:
            return
        context.outcome = outcome
        if context.timer is not None:
            context.timer.cancel()
        if context.task is not None and context.task is not asyncio.current_task():
            context.task.cancel()
        self.emit_wake(context)

    def _cancel(self, task_id: str, reason: str) -> None:
        context = self.calls.get(task_id)
        if context is None:
            self._refused.add(task_id)
        elif context.outcome is None:
            context.cancel_reason = reason
            self._end(context, Outcome("cancelled", error=ToolError(Code.CANCELLED, f"cancelled ({reason})")))

    def _forget(self, task_ids: Sequence[str]) -> None:
        self.acknowledged.extend(task_ids)
        for task_id in task_ids:
            self.calls.pop(task_id, None)


def _failed(code: Code, message: str) -> Outcome:
    return Outcome("failed", error=ToolError(code, message))


def _settle(future: asyncio.Future[Any], value: Any) -> None:
    if not future.done():
        future.set_result(value)


def _expire(future: asyncio.Future[Any], verb: str) -> None:
    if not future.done():
        future.set_exception(NoAnswerError(f"{verb}: no answer"))


class Seen:
    """An observer of a call that keeps progress and logs."""

    def __init__(self) -> None:
        self.progresses: list[Progress] = []
        self.logs: list[tuple[str, Any]] = []

    def progress(self, p: Progress) -> None:
        self.progresses.append(p)

    def log(self, level: str, data: Any) -> None:
        self.logs.append((level, data))


def reporting(*reports: tuple[Any, ...], result: str = "done", seconds: float = 0) -> Function:
    """A tool with a result after `seconds`; reports are arguments of `log`, or of `progress` if numbers."""

    async def tool(ctx: ToolContext, arguments: dict[str, Any]) -> str:
        for report in reports:
            (ctx.log if isinstance(report[0], str) else ctx.progress)(*report)
        await asyncio.sleep(seconds)
        return result

    return tool
