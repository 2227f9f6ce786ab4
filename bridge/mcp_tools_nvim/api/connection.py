"""The connection of a Python program to Neovim, with the bridge's verbs and calls."""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import platform
import secrets
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .. import __version__
from ..calls.runner import START_WITHIN, Calls
from ..errors import Code, EditorError, LuaError, NoAnswerError, StartError
from ..instances.choose import Place, shown
from ..neovim.codec import fault_text
from ..neovim.modes import blocked_text
from ..neovim.nvim import NvimEditor
from ..values import CallRequest, ClientInfo, Hello, HelloInfo, Progress, Sender, ToolError
from .client import CallOptions
from .values import answer_of

FLUSH_TIMEOUT = 0.3
"""Maximum seconds to notify Neovim of the end of the connection."""
MODE_WITHIN = 0.25
"""Maximum seconds to wait for the mode, for the error when Neovim does not answer."""
HELLO_WITHIN = 60.0
"""Seconds; callers stop waiting earlier."""

SESSION = f"python-{secrets.token_hex(6)}"
"""One session for all connections of this process."""

# No output unless the program configures logging.
logging.getLogger(__name__.partition(".")[0]).addHandler(logging.NullHandler())


class EditorConnection:
    """A connection, made by `open_connection`."""

    def __init__(self, editor: NvimEditor, hello: Hello) -> None:
        self._editor = editor
        self._calls = Calls(editor, hello.settings)

    @property
    def closed(self) -> bool:
        """Whether the connection is closed."""
        return self._editor.closed.done()

    async def call(self, name: str, arguments: dict[str, Any], options: CallOptions) -> dict[str, Any]:
        """Runs one call to its end. Cancelling this, or an exception of a callback, cancels the tool."""
        request = CallRequest(
            name,
            arguments,
            Sender(
                ClientInfo(_program(), __version__),
                SESSION,
                None if options.get("on_elicit") is None else {"elicitation": {}},
                host="python",
            ),
            timeout=options.get("timeout"),
        )
        watch = _Watch(options)
        ask = None if options.get("on_elicit") is None else watch.ask
        watch.task = asyncio.get_running_loop().create_task(self._calls.run(request, watch, ask))
        self._calls.set_cancel_reason(watch.task, "client")
        try:
            outcome = await watch.task
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if watch.fault is None or (task is not None and task.cancelling()):
                raise
        if watch.fault is not None:
            raise watch.fault
        return answer_of(outcome)

    async def close(self) -> None:
        """Ends running calls and the connection."""
        self._calls.stop("disconnected")
        await _leave(self._editor)


async def open_connection(place: Place) -> EditorConnection | ToolError:
    """Connects to a Neovim; returns why that is not possible."""
    try:
        editor = await NvimEditor.open(place.address)
    except (StartError, ValueError, OverflowError) as fault:
        why = str(fault.__cause__ or fault) or "no answer"
        text = f"no Neovim listens at {shown(place.address)} ({place.origin}): {why}"
        return ToolError(Code.EDITOR_GONE, text)
    try:
        hello = await _hello(editor, place.address)
    except BaseException:
        editor.close()
        raise
    if isinstance(hello, ToolError):
        await _leave(editor)
        return hello
    return EditorConnection(editor, hello)


async def _hello(editor: NvimEditor, address: str) -> Hello | ToolError:
    versions = {"bridge": __version__, "python": platform.python_version()}
    info = HelloInfo(os.getpid(), 0, 0, "none", versions, role="client")
    answer = asyncio.ensure_future(editor.hello(info, HELLO_WITHIN))
    try:
        await asyncio.wait({answer}, timeout=START_WITHIN)
        if not answer.done():
            mode = await editor.mode(MODE_WITHIN)
            blocked = mode if mode is not None and mode.blocking else None
            return ToolError(Code.EDITOR_BLOCKED, blocked_text(blocked))
        return answer.result()
    except LuaError as fault:
        return ToolError(Code.EXECUTION_ERROR, fault_text(str(fault), address))
    except NoAnswerError:
        return ToolError(Code.EDITOR_BLOCKED, blocked_text(None))
    except EditorError as fault:
        return ToolError(Code.EDITOR_GONE, f"no Neovim at {address}: {fault}")
    finally:
        if not answer.done():
            answer.cancel()
            await asyncio.wait({answer})


async def _leave(editor: NvimEditor) -> None:
    try:
        if not editor.closed.done():
            await editor.leave(FLUSH_TIMEOUT)
    finally:
        editor.close()
    await asyncio.wait({editor.closed}, timeout=FLUSH_TIMEOUT)


class _Watch:
    """Passes events of a call to callbacks, whose first exception ends the call.

    Attributes:
        task: the task that runs the call.
        fault: the exception of a callback.
    """

    def __init__(self, options: CallOptions) -> None:
        self.task: asyncio.Task[Any]
        self.fault: Exception | None = None
        self._on_progress = options.get("on_progress")
        self._on_log = options.get("on_log")
        self._on_elicit = options.get("on_elicit")
        self._seq = 0

    def progress(self, p: Progress) -> None:
        if p.seq <= self._seq or self._on_progress is None:
            return  # a heartbeat
        self._seq = p.seq
        news = {"done": p.done, "total": p.total, "message": p.message}
        if p.state is not None:
            news["state"] = p.state
        self._run_callback(self._on_progress, news)

    def log(self, level: str, data: Any) -> None:
        if self._on_log is not None:
            self._run_callback(self._on_log, level, data)

    async def ask(self, requests: dict[str, Any]) -> dict[str, Any]:
        try:
            return {key: await self._answer(request) for key, request in requests.items()}
        except Exception as fault:  # noqa: BLE001 - boundary: re-raised by `call`
            self._fail(fault)
            return {}

    async def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        if request["method"] != "elicitation/create" or self._on_elicit is None:
            return {"error": {"code": -32601, "message": "a program can be asked for a form only"}}
        params = request["params"]
        content = self._on_elicit(params["message"], params["requestedSchema"])
        if inspect.isawaitable(content):
            content = await content
        if content is None:
            return {"result": {"action": "decline"}}
        if not isinstance(content, dict):
            raise TypeError(f"on_elicit returned {type(content).__name__}: it must be a dict or None")
        return {"result": {"action": "accept", "content": content}}

    def _run_callback(self, callback: Callable[..., Any], *values: Any) -> None:
        try:
            callback(*values)
        except Exception as fault:  # noqa: BLE001 - boundary: re-raised by `call`
            self._fail(fault)

    def _fail(self, fault: Exception) -> None:
        self.fault = self.fault or fault
        self.task.cancel()


def _program() -> str:
    return Path(sys.argv[0]).name if sys.argv and sys.argv[0] not in ("", "-c", "-m") else "python"
