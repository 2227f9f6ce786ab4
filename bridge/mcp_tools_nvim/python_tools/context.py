"""The context of a call, for tools that have a parameter `ctx`."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from concurrent.futures import CancelledError, Future
from typing import TYPE_CHECKING, Any, Literal

from ..errors import Code
from .errors import ToolError

if TYPE_CHECKING:
    from .worker.client_messages import ClientMessages

Level = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]


class Cancelled(threading.Event):
    """Set when the call is cancelled or out of time; true once it is set."""

    reason: str | None = None

    def __bool__(self) -> bool:
        return self.is_set()


class BaseContext:
    """Members of both kinds of context.

    Attributes:
        id: the call's id.
        host: kind of the caller: "mcp", "nvim", …
        client: declared `name` and `version` of the client.
        session: id of the client's session.
        root: the project's root.
        cwd: the editor's working directory.
        cancelled: an event; `if ctx.cancelled: return`, or `ctx.cancelled.wait(1)`.
    """

    def __init__(self, call_id: str, info: Mapping[str, Any], messages: ClientMessages) -> None:
        self.id = call_id
        self.host: str = info.get("host") or ""
        self.client: Mapping[str, Any] = info.get("client") or {}
        self.session: str | None = info.get("session")
        self.root: str = info.get("root") or ""
        self.cwd: str = info.get("cwd") or ""
        self.cancelled = Cancelled()
        self._messages = messages

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Report progress; may be called at any rate."""
        self._messages.progress(done, total, message)

    def log(self, level: Level, data: Any) -> None:
        """Send a log message to the client."""
        self._messages.log(level, data)


class Context(BaseContext):
    """The context of a plain function."""

    def elicit(self, message: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Ask the user to fill in a form; the tool's timeout is paused meanwhile.

        Args:
            message: text for the user.
            schema: JSON Schema of an object with flat properties.

        Returns:
            `action` ("accept", "decline", "cancel") and, when accepted, `content`.

        Raises:
            ToolError: the client cannot be asked, or the call has ended.
        """
        params = {"message": message, "requestedSchema": schema}
        answer: dict[str, Any] = wait(self._messages.ask("elicitation/create", params))
        return answer

    def lua(self, code: str, *args: Any) -> Any:
        """Run Lua in the editor, with `args` as its `...`, and return what it returns."""
        return wait(self._messages.lua(code, args))


class AsyncContext(BaseContext):
    """The context of an `async` function."""

    async def elicit(self, message: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        """As `Context.elicit`, to be awaited."""
        answer: dict[str, Any] = await asyncio.wrap_future(
            self._messages.ask("elicitation/create", {"message": message, "requestedSchema": schema})
        )
        return answer

    async def lua(self, code: str, *args: Any) -> Any:
        """As `Context.lua`, to be awaited."""
        return await asyncio.wrap_future(self._messages.lua(code, args))


def wait(answer: Future[Any]) -> Any:
    """Wait for an answer, or the end of the call."""
    try:
        return answer.result()
    except CancelledError:
        raise ToolError("the call has ended", Code.CANCELLED) from None
