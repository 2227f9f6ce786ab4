"""Runs the calls of Python tools. Each call ends exactly once.

Plain functions run in threads, `async` ones on the loop. Neovim drops what a function sends after the end of
its call, but is notified when the function returns.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any

from ...api import client as api
from ...errors import Code
from .. import errors, modules, parameters, results
from ..context import AsyncContext, Context
from ..errors import ToolError
from .client_messages import ClientMessages, Wire

MAX_THREADS = 64
"""Maximum plain functions that run concurrently."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A loaded tool."""

    function: Callable[..., Any]
    context: str | None
    converters: Mapping[str, Callable[[Any], Any]]
    is_async: bool

    def arguments(self, given: Mapping[str, Any], ctx: Context | AsyncContext) -> dict[str, Any]:
        """Returns the arguments of the function; raises ToolError for invalid ones."""
        made: dict[str, Any] = {
            name: self.converters[name](value) for name, value in given.items() if name in self.converters
        }
        if self.context:
            made[self.context] = ctx
        return made


@dataclass(slots=True)
class Running:
    """A call that has not ended."""

    id: str
    given: Mapping[str, Any]
    info: Mapping[str, Any]
    messages: ClientMessages
    ctx: Context | AsyncContext | None = None
    task: asyncio.Task[None] | None = None
    reason: str | None = None


def prepare(module: ModuleType, name: str) -> Tool:
    """Load a tool."""
    function = modules.tools_of(module).get(name)
    if function is None:
        place = getattr(module, "__file__", None) or module.__name__
        raise ToolError(f"{place} has no tool '{name}' any more")
    found = parameters.of(function)
    converters = {argument.name: parameters.converter(argument) for argument in found.arguments}
    return Tool(function, found.context, converters, inspect.iscoroutinefunction(function))


def not_started_error() -> ToolError:
    """Returns the error of a call that was cancelled before it began."""
    return ToolError("the call was cancelled before it began", Code.CANCELLED)


class Host:
    """The calls of one process."""

    def __init__(self, wire: Wire, loop: asyncio.AbstractEventLoop) -> None:
        self.wire = wire
        self.loop = loop
        self.threads = ThreadPoolExecutor(MAX_THREADS, "tool")
        self.free_threads = threading.Semaphore(MAX_THREADS)
        self.modules: dict[str, ModuleType] = {}
        self.locks: dict[str, threading.Lock] = {}
        self.calls: dict[str, Running] = {}
        self.tools: dict[tuple[str, str], Tool] = {}

    def handle(self, event: str, *args: Any) -> None:
        """Handle an event of Neovim."""
        handlers: dict[str, Callable[..., None]] = {
            "remote_call": self.call,
            "remote_cancel": self.cancel,
            "remote_answer": self.answer,
        }
        if event in handlers:
            handlers[event](*args)

    def call(self, call_id: str, target: Mapping[str, Any], given: Any, info: Mapping[str, Any]) -> None:
        """Begin a call."""
        messages = ClientMessages(call_id, self.wire, self.loop)
        running = Running(call_id, given if isinstance(given, dict) else {}, info, messages)
        self.calls[call_id] = running
        key = (target["key"], target["name"])
        tool = self.tools.get(key)
        if tool and tool.is_async:
            self.begin(running, tool)
            return
        if self.free_threads.acquire(blocking=False):
            # The first import of a module may take long and must not block the loop.
            self.threads.submit(self.in_thread, running, key, target)
        else:
            text = f"{MAX_THREADS} Python tools are running; try again when one has ended"
            self.finish(running, {"kind": "error", "code": str(Code.BUSY), "message": text})

    def in_thread(self, running: Running, key: tuple[str, str], target: Mapping[str, Any]) -> None:
        """Load the tool if needed; run it here, or on the loop if it is `async`."""
        try:
            tool = self.tools.get(key) or prepare(self.module(key[0], target["source"]), key[1])
            self.tools[key] = tool
            if tool.is_async:
                self.loop.call_soon_threadsafe(self.begin, running, tool)
                return
            ctx = Context(running.id, running.info, running.messages)
            self.attach(running, ctx)
            api.cancelled.set(ctx.cancelled)
            value = tool.function(**tool.arguments(running.given, ctx))
            if inspect.iscoroutine(value):
                value.close()
                raise TypeError("a plain function returned a coroutine: make its decorators `async` as well")
            outcome = results.outcome_of(value, running.info.get("limit"))
        except BaseException as error:  # noqa: BLE001 - boundary, also for SystemExit
            outcome = errors.exception_outcome(error)
        finally:
            self.free_threads.release()
        self.finish(running, outcome)

    def module(self, key: str, source: Mapping[str, Any]) -> ModuleType:
        """Returns the module of a source, imported once; raises whatever its import raises."""
        with self.locks.setdefault(key, threading.Lock()):
            if key not in self.modules:
                self.modules[key] = modules.load(source)
            return self.modules[key]

    def begin(self, running: Running, tool: Tool) -> None:
        """Begin a call of an `async` function."""
        ctx = AsyncContext(running.id, running.info, running.messages)
        try:
            self.attach(running, ctx)
        except ToolError as error:
            self.finish(running, errors.exception_outcome(error))
            return
        running.task = self.loop.create_task(self.on_loop(running, tool, ctx))
        running.task.add_done_callback(partial(self.ended, running))

    def ended(self, running: Running, _: asyncio.Task[None]) -> None:
        """End a call whose task was cancelled before its first step, which runs no code of the task."""
        if running.id in self.calls:
            self.finish(running, errors.exception_outcome(not_started_error()))

    async def on_loop(self, running: Running, tool: Tool, ctx: AsyncContext) -> None:
        """Run an `async` function to its end."""
        api.cancelled.set(ctx.cancelled)  # for threads that it starts
        try:
            made: Coroutine[Any, Any, Any] = tool.function(**tool.arguments(running.given, ctx))
            outcome = results.outcome_of(await made, running.info.get("limit"))
        except BaseException as error:  # noqa: BLE001 - boundary: SystemExit would end the loop
            outcome = errors.exception_outcome(error)
        self.finish(running, outcome)

    def attach(self, running: Running, ctx: Context | AsyncContext) -> None:
        """Set the context of a call; raises ToolError if it was cancelled already."""
        running.ctx = ctx
        if running.reason is not None:
            ctx.cancelled.reason = running.reason
            ctx.cancelled.set()
            raise not_started_error()

    def finish(self, running: Running, outcome: Mapping[str, Any]) -> None:
        """End a call and report its outcome."""
        if self.calls.pop(running.id, None):
            running.messages.close()
            self.wire.post("remote_result", running.id, dict(outcome))

    def cancel(self, call_id: str, reason: str) -> None:
        """Notify a tool that its call has ended."""
        running = self.calls.get(call_id)
        if running is None:
            return
        running.reason = reason
        if running.ctx:
            running.ctx.cancelled.reason = reason
            running.ctx.cancelled.set()
        running.messages.close()
        if running.task:
            running.task.cancel()

    def answer(self, call_id: str, ask: int, answer: Any, error: Any) -> None:
        """Handle an answer of the client."""
        running = self.calls.get(call_id)
        if running:
            running.messages.answer(ask, answer, error)
