"""The response to one POST: plain JSON, unless something is streamed before it; then an event stream.

Receives: messages on the way, then the answer. Sends: one response. Does not know about: what it answers.
The request's own task makes it and finishes it; only a stream costs a further task.
"""

from __future__ import annotations

import asyncio

from aiohttp import web

from ..sessions.outbox import EventIds, Outbox
from .events import PING_SECONDS, attach, serve
from .listener import is_connected


class DeferredResponse:
    """See the head of this file.

    Attributes:
        outbox: of the event stream, once there is one.
    """

    def __init__(self, request: web.Request, ids: EventIds | None = None, *, prime: bool = False) -> None:
        self._request = request
        self._ids = ids
        self._prime = prime
        self._writer: asyncio.Task[web.StreamResponse] | None = None
        self._finished = False
        self._timer = asyncio.get_running_loop().call_later(PING_SECONDS, self._commit)
        self.outbox: Outbox | None = None

    def connected(self) -> bool:
        """Does the connection still stand?"""
        return is_connected(self._request)

    def push(self, data: bytes, *, droppable: bool = False) -> None:
        """Sends a message before the answer; the first one decides for the event stream."""
        if (outbox := self._commit()) is not None:
            outbox.push(data, droppable=droppable)

    def hang_up(self) -> None:
        """Ends the response before the answer; the client resumes the stream for the rest."""
        if (outbox := self._commit()) is not None:
            outbox.hang_up()

    async def finish(self, answer: bytes, status: int = 200) -> web.StreamResponse:
        """Sends the answer. `status` counts only for plain JSON."""
        self._finished = True
        if self.outbox is None or self._writer is None:
            return json_response(answer, status)
        self.outbox.push(answer)
        self.outbox.end()
        return await self._writer

    def close(self) -> None:
        """Leaves nothing running; for the `finally` of the request."""
        self._timer.cancel()
        if self._writer is not None and not self._writer.done():
            self._writer.cancel()

    def _commit(self) -> Outbox | None:
        """The stream, begun now at the latest; None when the answer has gone without one."""
        if self.outbox is None and not self._finished:
            self.outbox = Outbox(self._ids)
            turn = attach(self.outbox, self._request)
            writing = serve(self.outbox, self._request, turn, prime=self._prime, answers=True)
            self._writer = asyncio.get_running_loop().create_task(writing)
        return self.outbox


def json_response(body: bytes, status: int = 200) -> web.Response:
    """An answer in one piece."""
    return web.Response(body=body, status=status, content_type="application/json")
