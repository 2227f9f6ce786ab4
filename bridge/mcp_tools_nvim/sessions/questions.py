"""What one client was asked, and has not answered."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .. import jsonrpc

if TYPE_CHECKING:
    from ..mcp.dispatch import Push


class Questions:
    """See the head of this file."""

    def __init__(self) -> None:
        self._ids = itertools.count(1)
        self._waiting: dict[str, asyncio.Future[jsonrpc.Answer]] = {}

    async def ask(
        self, push: Push, method: str, params: Mapping[str, Any] | None, seconds: float | None
    ) -> jsonrpc.Answer:
        """Asks the client over a stream's `push`; waits at most `seconds`.

        Raises:
            TimeoutError: the client did not answer in time.
        """
        id_ = next(self._ids)
        asked: asyncio.Future[jsonrpc.Answer] = asyncio.get_running_loop().create_future()
        self._waiting[str(id_)] = asked
        push(jsonrpc.dumps(jsonrpc.request(id_, method, params)))
        try:
            async with asyncio.timeout(seconds):
                return await asked
        except (asyncio.CancelledError, TimeoutError):
            push(jsonrpc.dumps(jsonrpc.notification("notifications/cancelled", {"requestId": id_})))
            raise
        finally:
            del self._waiting[str(id_)]

    def answered(self, message: jsonrpc.Answer) -> None:
        """The client answers. What comes too late, or to nothing, is ignored."""
        asked = self._waiting.get(str(message.id))  # some clients answer a number's id with its text
        if asked is not None and not asked.done():
            asked.set_result(message)

    @property
    def are_open(self) -> bool:
        """Whether the client was asked for something that it has not answered."""
        return bool(self._waiting)

    def lose(self, limit: int) -> None:
        """The client sent more than `limit` bytes. When one answer is waited for, that was it, unread."""
        if len(self._waiting) != 1:
            return  # which one it was is unknown; they have a deadline
        id_, asked = next(iter(self._waiting.items()))
        if not asked.done():
            text = f"its answer is larger than {limit} bytes"
            asked.set_result(jsonrpc.Answer(id_, error={"code": jsonrpc.TOO_LARGE, "message": text}))

    def cancel(self) -> None:
        """Nobody will answer; whoever asked is cancelled."""
        for asked in self._waiting.values():
            asked.cancel()
