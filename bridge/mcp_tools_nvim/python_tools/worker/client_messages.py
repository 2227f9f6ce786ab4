"""Messages to the client of a call, while it runs: progress, log, questions."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, InvalidStateError
from functools import partial
from typing import Any, Protocol

from ...errors import Code
from ...rate_limit import TokenBucket
from .. import errors, results
from ..errors import ToolError

INTERVAL = 0.05
"""Minimum seconds between two progress messages."""
MAX_TEXT = 1000
"""Maximum characters of a progress message."""
MAX_LOG = 65_536
"""Maximum characters of a log message: clients fail on events of a megabyte."""
LOGS = 100
"""Maximum log messages per second, since Neovim handles every one."""


class Wire(Protocol):
    """The connection to Neovim; every method may be called from any thread and never raises."""

    def post(self, verb: str, *args: Any) -> None:
        """Call a verb without an answer."""

    def lua(self, code: str, args: tuple[Any, ...], done: Callable[[Any, Exception | None], None]) -> None:
        """Run Lua; `done` is always called, with the result or the exception."""


class ClientMessages:
    """Messages of one call; every method may be called from any thread."""

    def __init__(self, call_id: str, wire: Wire, loop: asyncio.AbstractEventLoop) -> None:
        self.id = call_id
        self._wire = wire
        self._loop = loop
        self._lock = threading.Lock()
        self._open = True
        self._waiting: tuple[float, float | None, str | None] | None = None
        self._next_progress = 0.0
        self._logs = TokenBucket(LOGS, LOGS, time.monotonic())
        self._dropped = 0
        self._asks = itertools.count(1)
        self._answers: dict[int, Future[Any]] = {}

    def progress(self, done: float, total: float | None, message: str | None) -> None:
        """Send the latest progress, at once or after `INTERVAL`."""
        message = message if message is None else errors.shortened(str(message), MAX_TEXT)
        now = time.monotonic()
        with self._lock:
            if not self._open:
                return
            if self._waiting is not None:
                self._waiting = (done, total, message)
                return
            if now < self._next_progress:
                self._waiting = (done, total, message)
                later = self._next_progress - now
            else:
                self._next_progress, later = now + INTERVAL, None
        if later is None:
            self._wire.post("remote_progress", self.id, done, total, message)
        else:
            self._soon(lambda: self._loop.call_later(later, self._flush))

    def _flush(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, None
            self._next_progress = time.monotonic() + INTERVAL
            if waiting is None or not self._open:
                return
        self._wire.post("remote_progress", self.id, *waiting)

    def log(self, level: str, data: Any) -> None:
        """Send a log message, up to `LOGS` per second; long ones are cut."""
        text = results.to_json(data)
        if len(text) > MAX_LOG:
            text = results.to_json(errors.shortened(text, MAX_LOG // 2))
        now = time.monotonic()
        with self._lock:
            if not self._open:
                return
            if self._logs.take(now):
                self._dropped += 1
                return
            dropped, self._dropped = self._dropped, 0
        if dropped:
            self._wire.post("remote_log", self.id, "warning", f'"{dropped} log messages were dropped"')
        self._wire.post("remote_log", self.id, level, text)

    def ask(self, method: str, params: Mapping[str, Any]) -> Future[Any]:
        """Ask the client; the future is cancelled at the end of the call."""
        request = {"answer": {"method": method, "params": dict(params)}}
        text = results.to_json(request)
        ask, answer = self._asked()
        if not answer.cancelled():
            self._wire.post("remote_ask", self.id, ask, text)
        return answer

    def answer(self, ask: int, answer: Any, error: Any) -> None:
        """Handle the client's answer, or the error instead of it."""
        fault = ToolError(error["message"], error.get("code", Code.TOOL_ERROR)) if error else None
        self._settle(ask, answer, fault)

    def lua(self, code: str, args: tuple[Any, ...]) -> Future[Any]:
        """Run Lua in Neovim; the future is cancelled at the end of the call."""
        ask, answer = self._asked()
        if not answer.cancelled():
            self._wire.lua(code, args, partial(self._settle, ask))
        return answer

    def close(self) -> None:
        """Handle the end of the call: nothing more is sent, and pending futures are cancelled."""
        with self._lock:
            self._open = False
            waiting, self._answers = list(self._answers.values()), {}
        for future in waiting:
            future.cancel()

    def _asked(self) -> tuple[int, Future[Any]]:
        answer: Future[Any] = Future()
        with self._lock:
            ask = next(self._asks)
            if self._open:
                self._answers[ask] = answer
            else:
                answer.cancel()
        return ask, answer

    def _settle(self, ask: int, value: Any, error: Exception | None) -> None:
        with self._lock:
            future = self._answers.pop(ask, None)
        if future is not None:
            settle(future, value, error)

    def _soon(self, function: Callable[[], object]) -> None:
        try:
            self._loop.call_soon_threadsafe(function)
        except RuntimeError:
            pass  # the process is ending


def settle(future: Future[Any], value: Any, error: Exception | None) -> None:
    """Set the result of a future, unless it is cancelled."""
    try:
        if error:
            future.set_exception(error)
        else:
            future.set_result(value)
    except InvalidStateError:
        pass  # the call has ended
