"""One request in flight: serves it through the kernel in the caller's task, and cancels it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from .. import jsonrpc

if TYPE_CHECKING:
    from ..calls.runner import Calls
    from .dispatch import Dispatch
    from .kernel import Kernel

_CANCELLED = {
    "client": "Request cancelled",
    "disconnected": "Request cancelled: the client disconnected",
    "session_closed": "Request cancelled: the session was closed",
    "client_gone": "Request cancelled: the client has not reconnected in time",
    "shutdown": "Request cancelled: the server is shutting down",
}


class Exchange:
    """A request in flight. Created in the task that then awaits `run`.

    Attributes:
        connected: whether the connection of the request is still open.
        task: the task that it was created in.
        status: HTTP status of the answer in the stateless era; known after `run`.
    """

    def __init__(self, calls: Calls, connected: Callable[[], bool], request: jsonrpc.Request) -> None:
        task = asyncio.current_task(calls.loop)
        if task is None:
            raise RuntimeError("an exchange must be created in a task")
        self.request = request
        self.status = 200
        self.connected = connected
        self._calls = calls
        self.task = task
        self._reason: str | None = None

    def cancel(self, reason: str) -> None:
        """Cancels the request, which is then answered at once. Only the first reason is used."""
        if self._reason is None:
            self._reason = reason
            self._calls.cancel_reason(self.task, reason)
            self.task.cancel()

    def lose(self) -> None:
        """Handles a lost connection: cancels a call that waits for approval; a running one continues."""
        if self._calls.awaits_approval(self.task):
            self.cancel("disconnected")

    async def run(
        self,
        kernel: Kernel,
        dispatch: Dispatch,
        serve: Callable[[Dispatch, jsonrpc.Request], Awaitable[dict[str, Any]]],
    ) -> bytes:
        """Serves the request and returns the answer; raises only when the task is cancelled elsewhere."""
        id_ = self.request.id
        try:
            result = await serve(dispatch, self.request)
            encoded, dispatch.encoded = dispatch.encoded, None  # frees memory: the dispatch lives longer
            if encoded is not None:
                return jsonrpc.result_of_encoded(id_, *encoded)
            return jsonrpc.dumps(jsonrpc.result(id_, result))
        except asyncio.CancelledError:
            if self._reason is None:
                raise
            self.task.uncancel()
            answer = jsonrpc.error(id_, jsonrpc.REQUEST_CANCELLED, _CANCELLED.get(self._reason, self._reason))
        except Exception as failure:  # noqa: BLE001 - boundary: becomes the answer
            answer = kernel.error(id_, failure)
            self.status = kernel.status_of(answer)
        return jsonrpc.dumps(answer)
