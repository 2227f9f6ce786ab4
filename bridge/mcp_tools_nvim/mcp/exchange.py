"""One request on its way through the kernel, in the task that made it, and how it is canceled."""

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
    "disconnected": "Request cancelled: the client is gone",
    "session_closed": "Request cancelled: the session was closed",
    "client_gone": "Request cancelled: the client has been silent and without a connection",
    "shutdown": "Request cancelled: the server ends",
}


class Exchange:
    """A request in flight. Made in the task that then awaits `run`.

    Attributes:
        connected: whether the connection that the request came by still stands.
        task: the one that it was made in.
        status: HTTP status that fits the answer in the stateless era; known after `run`.
    """

    def __init__(self, calls: Calls, connected: Callable[[], bool], request: jsonrpc.Request) -> None:
        task = asyncio.current_task(calls.loop)
        if task is None:
            raise RuntimeError("an exchange belongs to a task")
        self.request = request
        self.status = 200
        self.connected = connected
        self._calls = calls
        self.task = task
        self._reason: str | None = None

    def cancel(self, reason: str) -> None:
        """Calls it off; it is answered at once. Only the first reason counts."""
        if self._reason is None:
            self._reason = reason
            self._calls.cancel_reason(self.task, reason)
            self.task.cancel()

    def lose(self) -> None:
        """Nobody can have the answer any more. Nobody is asked on whether it may run; what runs goes on."""
        if self._calls.awaits_approval(self.task):
            self.cancel("disconnected")

    async def run(self, kernel: Kernel, dispatch: Dispatch, serving: Awaitable[dict[str, Any]]) -> bytes:
        """The answer; raises only when the task itself is ended from elsewhere."""
        id_ = self.request.id
        try:
            result = await serving
            encoded, dispatch.encoded = dispatch.encoded, None  # which lives on, and must not with a copy
            if encoded is not None:
                return jsonrpc.result_of_encoded(id_, *encoded)
            return jsonrpc.dumps(jsonrpc.result(id_, result))
        except asyncio.CancelledError:
            if self._reason is None:
                raise
            self.task.uncancel()
            answer = jsonrpc.error(id_, jsonrpc.REQUEST_CANCELLED, _CANCELLED.get(self._reason, self._reason))
        except Exception as failure:  # noqa: BLE001 - boundary: the kernel tells or hides what failed
            answer = kernel.error(id_, failure)
            self.status = kernel.status_of(answer)
        return jsonrpc.dumps(answer)
