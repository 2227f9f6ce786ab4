"""The response to one POST: plain JSON, unless something is streamed before it; then an event stream."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from aiohttp import web

from .. import jsonrpc
from ..sessions.streams import EventIds, Outbox
from .connection import is_connected, note_answer
from .events import PING_SECONDS, attach, serve

LOOK_SECONDS = 0.25
"""How often responses in flight are looked after; short ones never pay for it."""


LARGE_BYTES = 64 * 1024
"""aiohttp copies an answer behind its head, which costs a large one its memory a second time."""

JSON = "application/json"


class Responses:
    """Those in flight. One timer looks after all of them: one for each would cost a fiftieth of a call."""

    def __init__(self) -> None:
        self._open: set[DeferredResponse] = set()
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, response: DeferredResponse) -> None:
        """From now on."""
        self._open.add(response)
        if self._timer is None:
            self._timer = self._loop.call_later(LOOK_SECONDS, self._look)

    def discard(self, response: DeferredResponse) -> None:
        """No longer."""
        self._open.discard(response)

    def _look(self) -> None:
        now = self._loop.time()
        for response in list(self._open):
            response.look(now)
        self._timer = self._loop.call_later(LOOK_SECONDS, self._look) if self._open else None


class DeferredResponse:
    """See the head of this file.

    Attributes:
        outbox: of the event stream, once there is one.
        when_gone: called when the connection is found to be gone, again and again.
    """

    def __init__(
        self,
        request: web.Request,
        among: Responses,
        ids: EventIds | None = None,
        *,
        asked: Sequence[jsonrpc.RequestId] = (),
        prime: bool = False,
    ) -> None:
        self._request = request
        self._asked = asked
        self._among = among
        self._ids = ids
        self._prime = prime
        self._writer: asyncio.Task[web.StreamResponse] | None = None
        self._finished = False
        self._silent_since: float | None = None
        self.outbox: Outbox | None = None
        self.when_gone: Callable[[], None] | None = None
        among.add(self)

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
            if len(answer) > LARGE_BYTES:
                return await self._write_large(answer, status)
            return json_response(answer, status)
        self.outbox.push(answer)
        self.outbox.end()
        return await self._writer

    async def _write_large(self, answer: bytes, status: int) -> web.StreamResponse:
        """Writes an answer without a copy, and its size is known while the client does not read it."""
        response = web.StreamResponse(status=status, headers={"Content-Type": JSON})
        response.content_length = len(answer)
        await response.prepare(self._request)
        note_answer(self._request, len(answer))
        try:
            await response.write(answer)
            await response.write_eof()
        finally:
            note_answer(self._request, 0)
        return response

    def look(self, now: float) -> None:
        """After a while of silence it becomes a stream, whose pings keep it open; `now` is the loop's."""
        if self.when_gone is not None and not self.connected():
            self.when_gone()
        elif self._silent_since is None:
            self._silent_since = now
        elif now - self._silent_since >= PING_SECONDS:
            self._commit()

    def close(self) -> None:
        """Leaves nothing running; for the `finally` of the request."""
        self._among.discard(self)
        self.when_gone = None
        if self._writer is not None and not self._writer.done():
            self._writer.cancel()

    def _commit(self) -> Outbox | None:
        """The stream, begun now at the latest; None when the answer has gone without one."""
        if self.outbox is None and not self._finished:
            self.outbox = Outbox(self._ids, self._asked)
            turn = attach(self.outbox, self._request)
            writing = serve(self.outbox, self._request, turn, prime=self._prime, answers=True)
            self._writer = asyncio.get_running_loop().create_task(writing)
        return self.outbox


def json_response(body: bytes, status: int = 200) -> web.Response:
    """An answer in one piece."""
    return web.Response(body=body, status=status, content_type=JSON)
