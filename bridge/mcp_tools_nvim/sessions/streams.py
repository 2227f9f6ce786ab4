"""Streams to one client: outboxes with unsent and resumable messages, and event ids."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from .. import jsonrpc

UNSENT_SOFT, UNSENT_HARD = 64, 256
"""Numbers of unsent events. Above the first, progress and log events are dropped. Above the second, a slow
reader is disconnected; if there is no reader, the oldest event is dropped."""

UNSENT_BYTES = 24 * 1024 * 1024
"""The limit UNSENT_HARD in bytes: two results of the maximum size. The newest event is never dropped."""

KEPT_EVENTS, KEPT_BYTES = 256, 1024 * 1024
"""Maximum number and bytes of the events that a resumable outbox keeps, besides the newest event."""

MAX_DIGITS = 19
"""Maximum number of digits in the number of an event id."""

MAX_REQUEST_IDS_CHARS = 4096
"""Maximum characters of the request ids in an event id; longer lists are left out. The client sends the event
id in a header, of at most 8190 bytes."""

ENDED_STREAMS = 16
"""Maximum number of ended response streams that a client can still resume."""

ENDED_BYTES = 16 * 1024 * 1024
"""Maximum bytes of a client's ended streams besides the newest; they use up the limit of `Backpressure`."""

ENDED_SECONDS = 300.0
"""How long an ended stream is kept; Neovim keeps a result that is not fetched as long."""


class EventIds:
    """Makes and reads event ids, `<boot>-<n>`; one counter for the process makes them unique.

    On a stream that answers requests, an event id also contains their ids: `<boot>-<n>.<requests>`. A client
    that resumes the stream after a restart of the bridge then gets an error for each request.
    """

    def __init__(self, boot: str) -> None:
        self._boot = boot
        self._numbers = itertools.count(1)

    def next(self) -> int:
        """Returns a number not used before in this process."""
        return next(self._numbers)

    def write(self, number: int, request_ids: Sequence[jsonrpc.RequestId] = ()) -> str:
        """Returns the id of an event on a stream that answers the requests `request_ids`."""
        id_ = f"{self._boot}-{number}"
        if request_ids:
            encoded = base64.urlsafe_b64encode(jsonrpc.dumps(list(request_ids))).decode()
            if len(encoded) <= MAX_REQUEST_IDS_CHARS:
                id_ += f".{encoded}"
        return id_

    @staticmethod
    def request_ids(text: str) -> list[jsonrpc.RequestId]:
        """Returns the request ids in an event id of any process; empty for any other text."""
        _, _, encoded = text.partition(".")
        if not encoded or len(encoded) > MAX_REQUEST_IDS_CHARS:
            return []
        try:
            ids = json.loads(base64.b64decode(encoded, b"-_", validate=True))
        except (ValueError, RecursionError):
            return []
        valid = isinstance(ids, list) and all(isinstance(id_, str | int) for id_ in ids)
        return ids if valid and not any(isinstance(id_, bool) for id_ in ids) else []

    def read(self, text: str) -> int | None:
        """Returns the number in an event id of this process; None for any other text."""
        boot, _, number = text.partition(".")[0].rpartition("-")
        mine = boot == self._boot and number.isascii() and number.isdecimal() and len(number) <= MAX_DIGITS
        return int(number) if mine else None


@dataclass(slots=True, eq=False)
class Event:
    """An outgoing message."""

    number: int
    data: bytes
    droppable: bool = False
    key: str | None = None


class Outbox:
    """Outgoing messages of one stream, for one reader at a time.

    Args:
        ids: makes event ids; None = the stream is not resumable.
        request_ids: ids of the requests that the stream answers.

    Attributes:
        position: number of the last written event.
    """

    def __init__(self, ids: EventIds | None = None, request_ids: Sequence[jsonrpc.RequestId] = ()) -> None:
        self.ids = ids
        self.request_ids = request_ids
        self.ended = False
        self._unsent: deque[Event] = deque()
        self._unsent_bytes = 0
        self._kept: deque[Event] = deque()
        self._kept_bytes = 0
        # `_floor` is the number of the last event that was dropped from `_kept`.
        self.position = self._floor = ids.next() if ids else 0
        self._wake = asyncio.Event()
        self._reader = 0
        self._connected: Callable[[], bool] | None = None

    @property
    def alive(self) -> bool:
        """Whether there is a connected reader."""
        return self._connected is not None and self._connected()

    @property
    def was_read(self) -> bool:
        """Whether there has ever been a reader."""
        return self._reader > 0

    @property
    def size(self) -> int:
        """Bytes in memory. Kept and unsent events overlap: both end with the newest one."""
        return max(self._kept_bytes, self._unsent_bytes)

    def push(
        self, data: bytes, *, droppable: bool = False, key: str | None = None, latest: bool = False
    ) -> None:
        """Queues a message; never waits.

        Args:
            data: JSON text without line breaks.
            droppable: may be dropped when the reader is slow.
            key: skip the message while an unsent one has the same key.
            latest: instead replace the unsent ones with the same key.
        """
        if key is not None and latest:
            self._drop_unsent(key)
        elif key is not None and any(event.key == key for event in self._unsent):
            return
        event = Event(self.ids.next() if self.ids else 0, data, droppable, key)
        self._unsent.append(event)
        self._unsent_bytes += len(data)
        self._keep(event)
        if len(self._unsent) > UNSENT_SOFT or self._unsent_bytes > UNSENT_BYTES:
            self._make_room()
        self._wake.set()

    def end(self) -> None:
        """Ends the stream after the queued messages."""
        self.ended = True
        self._wake.set()

    def hang_up(self) -> None:
        """Disconnects the reader; another may follow."""
        self._reader += 1
        self._connected = None
        self._wake.set()

    def knows(self, number: int) -> bool:
        """Whether a reader can resume after this event."""
        return number == self._floor or any(event.number == number for event in self._kept)

    def attach(self, connected: Callable[[], bool]) -> int:
        """Makes the caller the only reader.

        Args:
            connected: whether the reader is still connected.

        Returns:
            The number of this reader; the methods below take it.
        """
        self.hang_up()
        self._connected = connected
        return self._reader

    def release(self) -> None:
        """Detaches the reader if it has disconnected; without writes, nothing else detects that."""
        if self._connected is not None and not self.alive:
            self.hang_up()

    def leave(self, reader: int) -> None:
        """Detaches this reader, if it is the current one."""
        if reader == self._reader:
            self._connected = None

    def is_current(self, reader: int) -> bool:
        """Whether this reader is still the current one."""
        return reader == self._reader

    def resume(self, number: int) -> None:
        """Queues the kept events after this one again."""
        self._unsent = deque(event for event in self._kept if event.number > number)
        self._unsent_bytes = sum(len(event.data) for event in self._unsent)
        self.position = number

    async def next(self, reader: int, seconds: float) -> Event | None:
        """Waits for the next event to write; it stays queued until `wrote`.

        Returns:
            None when another reader has replaced this one, or all of an ended stream is written.

        Raises:
            TimeoutError: there was no event for `seconds`.
        """
        while reader == self._reader:
            if self._unsent:
                return self._unsent[0]
            if self.ended:
                return None
            self._wake.clear()
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        return None

    def wrote(self, reader: int, event: Event) -> None:
        """Removes an event that the reader has written."""
        if reader == self._reader and self._unsent and self._unsent[0] is event:
            self._drop_first()
            self.position = event.number

    def _keep(self, event: Event) -> None:
        if self.ids is None:
            return
        self._kept.append(event)
        self._kept_bytes += len(event.data)
        while len(self._kept) > 1 and (len(self._kept) > KEPT_EVENTS or self._kept_bytes > KEPT_BYTES):
            dropped = self._kept.popleft()
            self._kept_bytes -= len(dropped.data)
            self._floor = dropped.number

    def _make_room(self) -> None:
        for event in self._unsent:
            if event.droppable:
                self._unsent.remove(event)
                self._unsent_bytes -= len(event.data)
                return
        if self._connected is not None and self._overfull():
            self.hang_up()
        while len(self._unsent) > 1 and self._connected is None and self._overfull():
            self._drop_first()

    def _overfull(self) -> bool:
        return len(self._unsent) > UNSENT_HARD or self._unsent_bytes > UNSENT_BYTES

    def _drop_unsent(self, key: str) -> None:
        """Drops unsent events with this key, except the first one, which a reader may be writing."""
        first = self._unsent[0] if self._unsent and self._connected is not None else None
        for event in [event for event in self._unsent if event.key == key and event is not first]:
            self._unsent.remove(event)
            self._unsent_bytes -= len(event.data)

    def _drop_first(self) -> None:
        self._unsent_bytes -= len(self._unsent.popleft().data)


class Response(Protocol):
    """The response that sends the answers to requests, and messages that precede them.

    Attributes:
        outbox: outbox of the response as a stream; None while nothing was pushed.
    """

    outbox: Outbox | None

    def connected(self) -> bool:
        """Whether the client is still connected."""

    def push(self, data: bytes, *, droppable: bool = False) -> None:
        """Sends a message before the answer."""

    def hang_up(self) -> None:
        """Ends the response before the answer; the client resumes to get it."""


class Streams:
    """The standalone stream of a client, its open responses, and ended ones that it can resume.

    Args:
        ids: makes event ids; None = streams cannot be resumed.
    """

    def __init__(self, ids: EventIds | None) -> None:
        self.standalone = Outbox(ids)
        self._open: set[Response] = set()
        self._ended: deque[tuple[float, Outbox]] = deque(maxlen=ENDED_STREAMS)

    @property
    def alive(self) -> bool:
        """Whether any stream has a connected reader."""
        return self.standalone.alive or any(stream.alive for stream in self._open_outboxes())

    @property
    def any_open(self) -> bool:
        """Whether a response is being prepared or written."""
        return bool(self._open)

    def responding(self, response: Response) -> None:
        """Adds a response that is being prepared."""
        self._open.add(response)

    def responded(self, response: Response) -> None:
        """Removes a response that ended; if it streamed, the client can resume it from now on."""
        self._open.discard(response)
        if response.outbox is not None:
            self._keep(response.outbox)

    def resumable(self, number: int) -> Outbox | None:
        """Returns the stream of an event, if it can be resumed after it."""
        ended = (stream for _, stream in self._ended)
        for stream in (self.standalone, *self._open_outboxes(), *ended):
            if stream.knows(number):
                return stream
        return None

    @property
    def ended_bytes(self) -> int:
        """Bytes in ended streams."""
        return sum(stream.size for _, stream in self._ended)

    @property
    def held_bytes(self) -> int:
        """Bytes in all streams, ended or not."""
        open_ = self.standalone.size + sum(stream.size for stream in self._open_outboxes())
        return open_ + self.ended_bytes

    @property
    def ended_at(self) -> float:
        """When the oldest ended stream ended, in monotonic seconds; infinite without one."""
        return self._ended[0][0] if self._ended else math.inf

    def drop_oldest(self) -> None:
        """Drops the oldest ended stream."""
        self._ended.popleft()

    def tidy(self, now: float) -> None:
        """Detaches disconnected readers and drops expired streams; `now` in monotonic seconds."""
        self.standalone.release()
        for stream in self._open_outboxes():
            stream.release()
        while self._ended and now - self._ended[0][0] > ENDED_SECONDS:
            self._ended.popleft()

    def hang_up(self) -> None:
        """Disconnects all readers, without an answer to their requests."""
        self.standalone.hang_up()
        for response in self._open:
            response.hang_up()

    def _open_outboxes(self) -> list[Outbox]:
        return [response.outbox for response in self._open if response.outbox is not None]

    def _keep(self, stream: Outbox) -> None:
        self._ended.append((time.monotonic(), stream))
        while len(self._ended) > 1 and self.ended_bytes > ENDED_BYTES:
            self._ended.popleft()
