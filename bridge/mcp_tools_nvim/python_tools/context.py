"""What a tool is handed: the context of its call."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from concurrent.futures import CancelledError, Future
from typing import Any, Literal, Protocol

from ..errors import Code
from .errors import ToolError

Level = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]


class Cancelled(threading.Event):
    """Set when the call is cancelled or out of time. Its truth is whether it is set."""

    reason: str | None = None

    def __bool__(self) -> bool:
        return self.is_set()


class Line(Protocol):
    """The way from a call to the editor; every method may be called from any thread."""

    def progress(self, done: float, total: float | None, message: str | None) -> None:
        """Tell how far the tool is."""

    def log(self, level: str, data: Any) -> None:
        """Send a log message to the client."""

    def ask(self, method: str, params: Mapping[str, Any]) -> Future[Any]:
        """Ask the client."""

    def lua(self, code: str, args: tuple[Any, ...]) -> Future[Any]:
        """Run Lua in the editor."""


class BaseContext:
    """What both kinds of context have.

    Attributes:
        id: the call's id.
        host: who asks: "mcp", "nvim", …
        client: `name` and `version`, as the client calls itself.
        session: one per client session.
        root: the project's root.
        cwd: the editor's working directory.
        cancelled: an event; `if ctx.cancelled: return`, or `ctx.cancelled.wait(1)`.
    """

    def __init__(self, call_id: str, info: Mapping[str, Any], line: Line) -> None:
        self.id = call_id
        self.host: str = info.get("host") or ""
        self.client: Mapping[str, Any] = info.get("client") or {}
        self.session: str | None = info.get("session")
        self.root: str = info.get("root") or ""
        self.cwd: str = info.get("cwd") or ""
        self.cancelled = Cancelled()
        self._line = line

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Tell how far the tool is; call it as often as you like."""
        self._line.progress(done, total, message)

    def log(self, level: Level, data: Any) -> None:
        """Send a log message to the client."""
        self._line.log(level, data)


class Context(BaseContext):
    """The context of a plain function; its questions wait for the answer."""

    def elicit(self, message: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Ask the user of the client to fill in a form; the tool's timeout is paused meanwhile.

        Args:
            message: shown to the user.
            schema: JSON Schema of an object with flat properties.

        Returns:
            `action` ("accept", "decline", "cancel") and, when accepted, `content`.

        Raises:
            ToolError: the client cannot be asked, or the call has ended.
        """
        params = {"message": message, "requestedSchema": schema}
        answer: dict[str, Any] = wait(self._line.ask("elicitation/create", params))
        return answer

    def lua(self, code: str, *args: Any) -> Any:
        """Run Lua in the editor, with `args` as its `...`, and return what it returns."""
        return wait(self._line.lua(code, args))


class AsyncContext(BaseContext):
    """The context of an `async` function."""

    async def elicit(self, message: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        """As `Context.elicit`, to be awaited."""
        answer: dict[str, Any] = await asyncio.wrap_future(
            self._line.ask("elicitation/create", {"message": message, "requestedSchema": schema})
        )
        return answer

    async def lua(self, code: str, *args: Any) -> Any:
        """As `Context.lua`, to be awaited."""
        return await asyncio.wrap_future(self._line.lua(code, args))


def wait(answer: Future[Any]) -> Any:
    """Wait for an answer that will not come when the call ends."""
    try:
        return answer.result()
    except CancelledError:
        raise ToolError("the call has ended", Code.CANCELLED) from None
