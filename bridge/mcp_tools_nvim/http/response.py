"""Responses: JSON, and streams of server-sent events that are written from an outbox.

The response to a POST becomes a stream if messages are sent before the answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from aiohttp import web

from .. import jsonrpc
from ..sessions.streams import Event, EventIds, Outbox
from .listener import connection_of, is_connected

if TYPE_CHECKING:
    from ..mcp.kernel import Peer

PING_SECONDS = 15.0
"""Interval of comments that show proxies and clients that a silent stream is alive."""

RETRY_MS = 1500
"""Milliseconds until a client reconnects: a restart of the bridge takes about a second, and the Python SDK
gives up after two failed attempts."""

SSE_HEADERS = {
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-cache, no-transform",
    "X-Accel-Buffering": "no",
}
_PING = b": ping\n\n"


class _Unframed(web.StreamResponse):
    """A response with neither a length nor chunks (RFC 9112, 6.3)."""

    _length_check = False


def attach(outbox: Outbox, request: web.Request) -> int:
    """Makes `request` the only reader of an outbox; returns the number of this reader."""
    return outbox.attach(partial(is_connected, request))


async def write_stream(
    outbox: Outbox,
    request: web.Request,
    reader: int,
    *,
    prime: bool = False,
    after: int | None = None,
    first: bytes = b"",
    answers: bool = False,
    framed: bool = True,
) -> web.StreamResponse:
    """Writes events until the stream ends, the client disconnects, or another reader replaces this one.

    Args:
        outbox: holds the events.
        request: the request to answer.
        reader: number from `attach`.
        prime: start with an empty event that has the position (since protocol version 2025-11-25).
        after: resume after this event; None = continue with unsent events.
        first: frames to write first.
        answers: the stream ends with an answer, which a client that closed its sending side may still read.
        framed: use chunks; otherwise clients cannot tell a killed bridge from a normal end.
    """
    if after is not None:
        outbox.resume(after)
    response = web.StreamResponse(headers=SSE_HEADERS) if framed else _Unframed(headers=SSE_HEADERS)
    if not framed:
        response.force_close()
    try:
        await response.prepare(request)
        retry = f"retry: {RETRY_MS}\n".encode() if outbox.ids else b""
        if outbox.ids and prime:
            first = _id_line(outbox, outbox.position) + retry + b"data: \n\n" + first
            retry = b""
        if first:
            await response.write(first)
        await _write_events(outbox, request, response, reader, retry, answers)
        await response.write_eof()
        if not outbox.is_current(reader) and request.transport is not None:
            # The request may still be running; the client must not send its next one on this connection.
            request.transport.close()
    except ConnectionError:
        pass  # the client has disconnected; it can resume
    finally:
        outbox.leave(reader)
    return response


async def _write_events(
    outbox: Outbox,
    request: web.Request,
    response: web.StreamResponse,
    reader: int,
    retry: bytes,
    answers: bool,
) -> None:
    while True:
        try:
            event = await outbox.next(reader, PING_SECONDS)
        except TimeoutError:
            if outbox.is_current(reader):
                await response.write(_PING)
            continue
        if event is None:
            return
        if not answers and not outbox.alive:
            return  # the client has disconnected; the event stays queued
        await response.write(retry + _frame(outbox, event))
        retry = b""
        outbox.wrote(reader, event)
        connection_of(request).note_answer(0)


def _frame(outbox: Outbox, event: Event) -> bytes:
    return _id_line(outbox, event.number) + b"event: message\ndata: " + event.data + b"\n\n"


def _id_line(outbox: Outbox, number: int) -> bytes:
    return f"id: {outbox.ids.write(number, outbox.request_ids)}\n".encode() if outbox.ids else b""


CHECK_SECONDS = 0.25
"""Interval of the checks of responses in flight."""

LARGE_BYTES = 64 * 1024
"""Larger answers are written separately from the head; together, aiohttp would copy them."""

JSON = "application/json"


class Responses:
    """The responses in flight, with one timer for all of them: one each would take 2 % of a call's time."""

    def __init__(self) -> None:
        self._open: set[DeferredResponse] = set()
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, response: DeferredResponse) -> None:
        """Adds a response to the checks."""
        self._open.add(response)
        if self._timer is None:
            self._timer = self._loop.call_later(CHECK_SECONDS, self._check_all)

    def discard(self, response: DeferredResponse) -> None:
        """Removes a response from the checks."""
        self._open.discard(response)

    def _check_all(self) -> None:
        now = self._loop.time()
        for response in list(self._open):
            response.check(now)
        self._timer = self._loop.call_later(CHECK_SECONDS, self._check_all) if self._open else None


class DeferredResponse:
    """A response that becomes JSON or an event stream.

    Args:
        request: the HTTP request.
        responses: all responses in flight.
        ids: makes event ids; None = a stream cannot be resumed.
        requests: the JSON-RPC requests that it answers.
        peer: the client of the session, if there is one.

    Attributes:
        outbox: outbox of the event stream, once there is one.
        when_gone: called at each check after the client has disconnected.
    """

    outbox: Outbox | None = None
    when_gone: Callable[[], None] | None = None
    _writer: asyncio.Task[web.StreamResponse] | None = None
    _finished = False
    _silent_since: float | None = None

    def __init__(
        self,
        request: web.Request,
        responses: Responses,
        ids: EventIds | None = None,
        *,
        requests: Sequence[jsonrpc.Request] = (),
        peer: Peer | None = None,
    ) -> None:
        self._request = request
        self._requests = requests
        self._responses = responses
        self._ids = ids
        self._peer = peer
        responses.add(self)

    def connected(self) -> bool:
        """Whether the client is still connected."""
        return is_connected(self._request)

    def push(self, data: bytes, *, droppable: bool = False) -> None:
        """Sends a message before the answer; the first one starts the event stream."""
        if (outbox := self._commit()) is not None:
            outbox.push(data, droppable=droppable)

    def hang_up(self) -> None:
        """Ends the response before the answer; the client resumes the stream to get it."""
        if (outbox := self._commit()) is not None:
            outbox.hang_up()

    async def finish(self, answer: bytes, status: int = 200) -> web.StreamResponse:
        """Sends the answer. `status` applies to JSON only."""
        self._finished = True
        if self.outbox is None or self._writer is None:
            if len(answer) > LARGE_BYTES:
                return await self._write_large(answer, status)
            return json_response(answer, status)
        self.outbox.push(answer)
        self.outbox.end()
        return await self._writer

    async def _write_large(self, answer: bytes, status: int) -> web.StreamResponse:
        """Writes an answer without a copy, and records its size while it is unread."""
        response = web.StreamResponse(status=status, headers={"Content-Type": JSON})
        response.content_length = len(answer)
        await response.prepare(self._request)
        connection_of(self._request).note_answer(len(answer))
        try:
            await response.write(answer)
            await response.write_eof()
        finally:
            connection_of(self._request).note_answer(0)
        return response

    def check(self, now: float) -> None:
        """Starts a stream after PING_SECONDS of silence, since its pings keep the connection open."""
        if self.when_gone is not None and not self.connected():
            self.when_gone()
        elif self._silent_since is None:
            self._silent_since = now
        elif now - self._silent_since >= PING_SECONDS:
            self._commit()

    def close(self) -> None:
        """Stops the response; called in the `finally` of the request."""
        self._responses.discard(self)
        self.when_gone = None
        if self._writer is not None and not self._writer.done():
            self._writer.cancel()

    def _commit(self) -> Outbox | None:
        """Returns the stream, starting it if needed; None when the answer was already sent as JSON."""
        if self.outbox is None and not self._finished:
            self.outbox = Outbox(self._ids, [request.id for request in self._requests])
            reader = attach(self.outbox, self._request)
            prime = self._peer is not None and self._peer.expects_priming
            writing = write_stream(self.outbox, self._request, reader, prime=prime, answers=True)
            self._writer = asyncio.get_running_loop().create_task(writing)
        return self.outbox


def json_response(body: bytes, status: int = 200) -> web.Response:
    """Returns a JSON response."""
    return web.Response(body=body, status=status, content_type=JSON)
