"""The outbox of a stream: messages that wait for a reader, and those that one may ask for again."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .. import jsonrpc

UNSENT_SOFT, UNSENT_HARD = 64, 256
"""Waiting events: beyond the first number, progress and logs make room; beyond the second, a reader that has
fallen so far behind is let go, and without a reader the oldest event goes."""

UNSENT_BYTES = 24 * 1024 * 1024
"""The same for their bytes, as the second number: two results of the largest size. The newest stays."""

KEPT_EVENTS, KEPT_BYTES = 256, 1024 * 1024
"""What a resumable outbox remembers. The newest event is always kept: no result is lost to its size."""


MAX_DIGITS = 19
"""Of a number in an event id: more than can be counted to."""


MAX_ASKED = 4096
"""Characters of an event id that name the requests of its stream; longer names are left out. The client sends
the event id as a header, of at most 8190 bytes."""


class EventIds:
    """Makes and reads event ids, `<boot>-<n>`; one counter for the whole process, so none comes twice.

    On a stream that answers requests the id also names these, `<boot>-<n>.<requests>`: a client that resumes
    a stream which no longer exists, because the bridge was restarted, can then be answered with an error.
    """

    def __init__(self, boot: str) -> None:
        self._boot = boot
        self._numbers = itertools.count(1)

    def next(self) -> int:
        """A number that was never used in this process."""
        return next(self._numbers)

    def write(self, number: int, asked: Sequence[jsonrpc.RequestId] = ()) -> str:
        """Returns the id of a number, on a stream that answers the requests `asked`."""
        id_ = f"{self._boot}-{number}"
        if asked:
            named = base64.urlsafe_b64encode(jsonrpc.dumps(list(asked))).decode()
            if len(named) <= MAX_ASKED:
                id_ += f".{named}"
        return id_

    @staticmethod
    def asked(text: str) -> list[jsonrpc.RequestId]:
        """Returns the requests that an event id names, of any process; none for any other text."""
        _, _, named = text.partition(".")
        if not named or len(named) > MAX_ASKED:
            return []
        try:
            ids = json.loads(base64.b64decode(named, b"-_", validate=True))
        except (ValueError, RecursionError):
            return []
        valid = isinstance(ids, list) and all(isinstance(id_, str | int) for id_ in ids)
        return ids if valid and not any(isinstance(id_, bool) for id_ in ids) else []

    def read(self, text: str) -> int | None:
        """The number in an id of this process; None for any other text."""
        boot, _, number = text.partition(".")[0].rpartition("-")
        mine = boot == self._boot and number.isascii() and number.isdecimal() and len(number) <= MAX_DIGITS
        return int(number) if mine else None


@dataclass(slots=True, eq=False)
class Event:
    """A message on its way."""

    number: int
    data: bytes
    droppable: bool = False
    key: str | None = None


class Outbox:
    """Messages of one stream.

    Args:
        ids: makes event ids; with them the stream is resumable.
        asked: the requests that the stream answers.
    """

    def __init__(self, ids: EventIds | None = None, asked: Sequence[jsonrpc.RequestId] = ()) -> None:
        self.ids = ids
        self.asked = asked
        self.ended = False
        self._unsent: deque[Event] = deque()
        self._unsent_bytes = 0
        self._kept: deque[Event] = deque()
        self._kept_bytes = 0
        # Positions: what was written last, and what was forgotten last.
        self._sent = self._floor = ids.next() if ids else 0
        self._wake = asyncio.Event()
        self._turn = 0
        self._connected: Callable[[], bool] | None = None

    @property
    def alive(self) -> bool:
        """Is there a reader whose connection still stands?"""
        return self._connected is not None and self._connected()

    @property
    def was_read(self) -> bool:
        """Has there ever been a reader?"""
        return self._turn > 0

    @property
    def size(self) -> int:
        """Bytes that it holds: kept or unwritten, both are its last events."""
        return max(self._kept_bytes, self._unsent_bytes)

    @property
    def position(self) -> int:
        """The number after which a reader goes on."""
        return self._sent

    def push(
        self, data: bytes, *, droppable: bool = False, key: str | None = None, latest: bool = False
    ) -> None:
        """Sends a message as soon as somebody reads; never waits.

        Args:
            data: JSON text without line breaks.
            droppable: may be left out when the reader is slow.
            key: an event with the same key that still waits makes this one superfluous.
            latest: it is the other way round: this one makes those superfluous that wait.
        """
        if key is not None and latest:
            self._drop_waiting(key)
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
        """No more messages: the reader ends when it has all."""
        self.ended = True
        self._wake.set()

    def hang_up(self) -> None:
        """Lets go of the reader; the outbox goes on."""
        self._turn += 1
        self._connected = None
        self._wake.set()

    def knows(self, number: int) -> bool:
        """Can a reader go on after this event?"""
        return number == self._floor or any(event.number == number for event in self._kept)

    # Its reader

    def attach(self, connected: Callable[[], bool]) -> int:
        """Takes a reader, in place of any other.

        Args:
            connected: whether the connection of the reader still stands.

        Returns:
            Its turn, for the methods below.
        """
        self.hang_up()
        self._connected = connected
        return self._turn

    def release(self) -> None:
        """Lets go of a reader whose connection is gone, as nothing may be written that would tell."""
        if self._connected is not None and not self.alive:
            self.hang_up()

    def leave(self, turn: int) -> None:
        """The reader goes by itself."""
        if turn == self._turn:
            self._connected = None

    def is_turn(self, turn: int) -> bool:
        """Is it still the turn of this reader?"""
        return turn == self._turn

    def resume(self, number: int) -> None:
        """What was sent after this event, and is kept, is sent again."""
        self._unsent = deque(event for event in self._kept if event.number > number)
        self._unsent_bytes = sum(len(event.data) for event in self._unsent)
        self._sent = number

    async def next(self, turn: int, seconds: float) -> Event | None:
        """The event to write now; it stays until `wrote`.

        Returns:
            None when the reader's turn is over, or everything is written and no more will come.

        Raises:
            TimeoutError: there was none for so many seconds.
        """
        while turn == self._turn:
            if self._unsent:
                return self._unsent[0]
            if self.ended:
                return None
            self._wake.clear()
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        return None

    def wrote(self, turn: int, event: Event) -> None:
        """The reader has written an event."""
        if turn == self._turn and self._unsent and self._unsent[0] is event:
            self._drop_first()
            self._sent = event.number

    # Bounds

    def _keep(self, event: Event) -> None:
        if self.ids is None:
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
                self._unsent_bytes -= len(event.data)
                return
        if self._connected is not None and self._overfull():
            self.hang_up()
        while len(self._unsent) > 1 and self._connected is None and self._overfull():
            self._drop_first()

    def _overfull(self) -> bool:
        return len(self._unsent) > UNSENT_HARD or self._unsent_bytes > UNSENT_BYTES

    def _drop_waiting(self, key: str) -> None:
        """But for the first, which may be on its way to the reader."""
        first = self._unsent[0] if self._unsent and self._connected is not None else None
        for event in [event for event in self._unsent if event.key == key and event is not first]:
            self._unsent.remove(event)
            self._unsent_bytes -= len(event.data)

    def _drop_first(self) -> None:
        self._unsent_bytes -= len(self._unsent.popleft().data)
