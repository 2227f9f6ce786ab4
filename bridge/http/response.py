"""The response to one POST: plain JSON, unless something is streamed before it; then an event stream.

Receives: messages on the way, then the answer. Sends: one response. Does not know about: what it answers.
The request's own task makes it and finishes it; only a stream costs a further task.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from email.utils import formatdate
from functools import lru_cache

from aiohttp import web
from aiohttp.http import SERVER_SOFTWARE, HttpVersion11

from .. import jsonrpc
from ..sessions.outbox import EventIds, Outbox
from .connection import is_connected, note_answer
from .events import PING_SECONDS, attach, serve

LOOK_SECONDS = 0.25
"""How often responses in flight are looked after; short ones never pay for it."""

COPIED_BYTES = 16 * 1024
"""Up to here it is cheaper to copy an answer behind its head than to write two pieces."""


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
            request = self._request
            if status == 200 and request.keep_alive and request.version == HttpVersion11:
                return _Answer(answer)
            return json_response(answer, status)
        self.outbox.push(answer)
        self.outbox.end()
        return await self._writer

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
    return web.Response(body=body, status=status, content_type="application/json")


class _Answer(web.StreamResponse):
    """The same to the byte for the common case, a connection that stays open: head and body as they are sent.

    What aiohttp does instead, header by header, is a tenth of a call.
    """

    _status, _reason, _keep_alive = 200, "OK", True

    def __init__(self, body: bytes) -> None:
        self._whole = body

    async def prepare(self, request: web.BaseRequest) -> None:
        """Writes all of it, and waits while the client does not read."""
        transport, body, self._whole = request.transport, self._whole, b""
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the client is gone")
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d" % len(body)
        head += _rest_of_head(int(time.time()))
        if len(body) <= COPIED_BYTES:
            transport.write(head + body)
        else:
            transport.writelines((head, body))
        size = len(body)
        del body  # while it waits, the transport has it: that is once
        if transport.get_write_buffer_size():
            note_answer(request, size)
            try:
                await request.writer.drain()
            finally:
                note_answer(request, 0)

    async def write_eof(self, data: bytes = b"") -> None:
        """Nothing is left to be written."""


@lru_cache(maxsize=1)
def _rest_of_head(now: int) -> bytes:
    return f"\r\nDate: {formatdate(now, usegmt=True)}\r\nServer: {SERVER_SOFTWARE}\r\n\r\n".encode("ascii")
