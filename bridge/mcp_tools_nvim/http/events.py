"""Server-sent events: writes an outbox to one response."""

from __future__ import annotations

from functools import partial

from aiohttp import web

from ..sessions.streams import Event, Outbox
from .connection import is_connected, note_answer

PING_SECONDS = 15.0
"""Interval of comments that show proxies and clients that a silent stream is alive."""

RETRY_MS = 1500
"""A restart of the bridge takes about a second; the Python SDK gives up after two failed attempts."""

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
    """Makes `request` the reader of an outbox, in place of any other; returns its turn for `write_stream`."""
    return outbox.attach(partial(is_connected, request))


async def write_stream(
    outbox: Outbox,
    request: web.Request,
    turn: int,
    *,
    prime: bool = False,
    after: int | None = None,
    first: bytes = b"",
    answers: bool = False,
    framed: bool = True,
) -> web.StreamResponse:
    """Writes events until the stream ends, the client disconnects, or another reader takes over.

    Args:
        outbox: holds the events.
        request: the request to answer.
        turn: returned by `attach`.
        prime: start with an empty event that has the position (not before 2025-11-25).
        after: resume after this event; None = continue with unsent events.
        first: frames to write first.
        answers: the stream ends with an answer, which a client that closed its sending side may still read.
        framed: use chunks; otherwise the body ends with the connection, even if the bridge is killed.
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
        await _write_events(outbox, request, response, turn, retry, answers)
        await response.write_eof()
        if not outbox.is_turn(turn) and request.transport is not None:
            # The request may still be running; the client must not send its next one on this connection.
            request.transport.close()
    except ConnectionError:
        pass  # the client has disconnected; it can resume
    finally:
        outbox.leave(turn)
    return response


async def _write_events(
    outbox: Outbox,
    request: web.Request,
    response: web.StreamResponse,
    turn: int,
    retry: bytes,
    answers: bool,
) -> None:
    while True:
        try:
            event = await outbox.next(turn, PING_SECONDS)
        except TimeoutError:
            if outbox.is_turn(turn):
                await response.write(_PING)
            continue
        if event is None:
            return
        if not answers and not outbox.alive:
            return  # without a write the disconnect would not be noticed
        await response.write(retry + _frame(outbox, event))
        retry = b""
        outbox.wrote(turn, event)
        note_answer(request, 0)


def _frame(outbox: Outbox, event: Event) -> bytes:
    return _id_line(outbox, event.number) + b"event: message\ndata: " + event.data + b"\n\n"


def _id_line(outbox: Outbox, number: int) -> bytes:
    return f"id: {outbox.ids.write(number, outbox.asked)}\n".encode() if outbox.ids else b""
