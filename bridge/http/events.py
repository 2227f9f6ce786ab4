"""One stream of events to a client, and the response that it is written to at the moment.

Receives: messages, from anywhere, without waiting. Sends: server-sent events to one response at a time; when
that is gone, the stream goes on and a later request can take it up after any event that is still kept.
Does not know about: sessions, MCP.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from dataclasses import dataclass

from aiohttp import web

PING_SECONDS = 15.0
"""A comment this often keeps proxies and clients from taking a silent stream for a dead one."""

RETRY_MS = 1500
"""A restart of the bridge takes about a second; the Python SDK gives up after two failed tries."""

UNSENT_SOFT, UNSENT_HARD = 64, 256
"""Waiting events: beyond the first number, progress and logs make room; beyond the second, a reader that has
fallen so far behind loses its response, and without a reader the oldest event goes."""

KEPT_EVENTS, KEPT_BYTES = 256, 1024 * 1024
"""What a resumable stream remembers. The newest event is always kept: no result is lost to its size."""

SSE_HEADERS = {
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-cache, no-transform",
    "X-Accel-Buffering": "no",
}


class EventIds:
    """Makes and reads event ids, `<boot>-<n>`; one counter for the whole process, so none comes twice."""

    def __init__(self, boot: str) -> None:
        self._boot = boot
        self._numbers = itertools.count(1)

    def next(self) -> int:
        """A number that was never used in this process."""
        return next(self._numbers)

    def write(self, number: int) -> bytes:
        """The `id:` line."""
        return f"id: {self._boot}-{number}\n".encode()

    def read(self, text: str) -> int | None:
        """The number in an id of this process; None for any other text."""
        boot, _, number = text.rpartition("-")
        return int(number) if boot == self._boot and number.isascii() and number.isdecimal() else None


@dataclass(slots=True, eq=False)
class Event:
    """A message on its way."""

    number: int
    data: bytes
    droppable: bool = False
    key: str | None = None


class EventStream:
    """See the head of this file. With `ids` it is resumable."""

    def __init__(self, ids: EventIds | None = None) -> None:
        self._ids = ids
        self._unsent: deque[Event] = deque()
        self._kept: deque[Event] = deque()
        self._kept_bytes = 0
        # Positions: what was written last, and what was forgotten last.
        self._sent = self._floor = ids.next() if ids else 0
        self._wake = asyncio.Event()
        self._turn = 0
        self._reader: web.Request | None = None
        self.ended = False

    @property
    def alive(self) -> bool:
        """Whether a response is attached whose connection still stands."""
        return self._reader is not None and is_connected(self._reader)

    @property
    def size(self) -> int:
        """Bytes that are kept for who resumes it."""
        return self._kept_bytes

    def push(self, data: bytes, *, droppable: bool = False, key: str | None = None) -> None:
        """Sends a message as soon as somebody reads; never waits.

        Args:
            data: JSON text without line breaks.
            droppable: may be left out when the reader is slow.
            key: an event with the same key that still waits makes this one superfluous.
        """
        if key is not None and any(event.key == key for event in self._unsent):
            return
        event = Event(self._ids.next() if self._ids else 0, data, droppable, key)
        self._unsent.append(event)
        self._keep(event)
        if len(self._unsent) > UNSENT_SOFT:
            self._make_room()
        self._wake.set()

    def end(self) -> None:
        """No more messages: the response ends when all are written."""
        self.ended = True
        self._wake.set()

    def hang_up(self) -> None:
        """Ends the response, not the stream."""
        self._turn += 1
        self._reader = None
        self._wake.set()

    def knows(self, number: int) -> bool:
        """Whether the stream can be taken up after this event."""
        return number == self._floor or any(event.number == number for event in self._kept)

    def attach(self, request: web.Request) -> int:
        """Makes `request` the one that is written to, in place of any other; its turn is for `serve`."""
        self.hang_up()
        self._reader = request
        return self._turn

    def release(self) -> None:
        """Lets go of a response whose connection is gone, as nothing may be written that would tell."""
        if self._reader is not None and not self.alive:
            self.hang_up()

    async def serve(
        self,
        request: web.Request,
        turn: int,
        *,
        prime: bool = False,
        after: int | None = None,
        first: bytes = b"",
    ) -> web.StreamResponse:
        """Writes to this request until the stream ends, the client is gone, or its turn is over.

        Args:
            request: whose response it becomes.
            turn: from `attach`.
            prime: begin with an empty event that carries the position (unexpected before 2025-11-25).
            after: resume after this event; None = go on with what was never written.
            first: frames to begin with.
        """
        if after is not None:
            self._unsent, self._sent = deque(event for event in self._kept if event.number > after), after
        response = web.StreamResponse(headers=SSE_HEADERS)
        try:
            await response.prepare(request)
            retry = f"retry: {RETRY_MS}\n".encode() if self._ids else b""
            if self._ids and prime:
                first = self._ids.write(self._sent) + retry + b"data: \n\n" + first
                retry = b""
            if first:
                await response.write(first)
            await self._write_events(response, turn, retry)
            await response.write_eof()
            if turn != self._turn and request.transport is not None:
                # The request may still be worked on, and the client must not queue its next one behind it.
                request.transport.close()
        except ConnectionError:
            pass  # the client is gone; what it missed waits for a request that resumes
        finally:
            if turn == self._turn:
                self._reader = None
        return response

    async def _write_events(self, response: web.StreamResponse, turn: int, retry: bytes) -> None:
        while turn == self._turn:
            if self._unsent:
                event = self._unsent[0]
                await response.write(retry + self._frame(event))
                retry = b""
                if turn == self._turn and self._unsent and self._unsent[0] is event:
                    self._unsent.popleft()
                    self._sent = event.number
            elif self.ended:
                return
            else:
                self._wake.clear()
                try:
                    async with asyncio.timeout(PING_SECONDS):
                        await self._wake.wait()
                except TimeoutError:
                    if turn == self._turn:
                        await response.write(b": ping\n\n")

    def _frame(self, event: Event) -> bytes:
        head = self._ids.write(event.number) if self._ids else b""
        return head + b"event: message\ndata: " + event.data + b"\n\n"

    def _keep(self, event: Event) -> None:
        if self._ids is None:
            return
        self._kept.append(event)
        self._kept_bytes += len(event.data)
        while len(self._kept) > 1 and (len(self._kept) > KEPT_EVENTS or self._kept_bytes > KEPT_BYTES):
            forgotten = self._kept.popleft()
            self._kept_bytes -= len(forgotten.data)
            self._floor = forgotten.number

    def _make_room(self) -> None:
        for event in self._unsent:
            if event.droppable:
                self._unsent.remove(event)
                return
        if len(self._unsent) > UNSENT_HARD:
            if self._reader is None:
                self._unsent.popleft()
            else:
                self.hang_up()


class DeferredResponse:
    """The response to one POST: plain JSON, unless something is streamed before it; then an event stream.

    The request's own task makes it and finishes it; only a stream costs a further task.
    """

    def __init__(self, request: web.Request, ids: EventIds | None = None, *, prime: bool = False) -> None:
        self._request = request
        self._ids = ids
        self._prime = prime
        self._writer: asyncio.Task[web.StreamResponse] | None = None
        self._finished = False
        self._timer = asyncio.get_running_loop().call_later(PING_SECONDS, self._commit)
        self.stream: EventStream | None = None

    def push(self, data: bytes, *, droppable: bool = False) -> None:
        """Sends a message before the answer; the first one decides for the event stream."""
        if (stream := self._commit()) is not None:
            stream.push(data, droppable=droppable)

    def hang_up(self) -> None:
        """Ends the response before the answer; the client resumes the stream for the rest."""
        if (stream := self._commit()) is not None:
            stream.hang_up()

    async def finish(self, answer: bytes, status: int = 200) -> web.StreamResponse:
        """Sends the answer. `status` counts only for plain JSON."""
        self._finished = True
        if self.stream is None or self._writer is None:
            return json_response(answer, status)
        self.stream.push(answer)
        self.stream.end()
        return await self._writer

    def close(self) -> None:
        """Leaves nothing running; for the `finally` of the request."""
        self._timer.cancel()
        if self._writer is not None and not self._writer.done():
            self._writer.cancel()

    def _commit(self) -> EventStream | None:
        """The stream, begun now at the latest; None when the answer has gone without one."""
        if self.stream is None and not self._finished:
            self.stream = EventStream(self._ids)
            serving = self.stream.serve(self._request, self.stream.attach(self._request), prime=self._prime)
            self._writer = asyncio.get_running_loop().create_task(serving)
        return self.stream


def json_response(body: bytes, status: int = 200) -> web.Response:
    """An answer in one piece."""
    return web.Response(body=body, status=status, content_type="application/json")


def is_connected(request: web.Request) -> bool:
    """Whether the connection that a request came by still stands."""
    return request.transport is not None and not request.transport.is_closing()
