"""The streams to one client: the standalone one, those of responses, and ended ones it may resume."""

from __future__ import annotations

import math
import time
from collections import deque
from typing import Protocol

from .outbox import EventIds, Outbox

KEPT_STREAMS = 16
"""Ended response streams that a client may still ask for after it lost its connection."""

KEPT_BYTES = 16 * 1024 * 1024
"""All of them together, but for the newest: room for one result of the largest size and its stream."""

KEPT_SECONDS = 300.0
"""As long as the editor keeps a result that nobody fetched."""


class Response(Protocol):
    """Where the answer to a message goes, and what comes before it.

    Attributes:
        outbox: of the stream that it became; None while nothing was pushed.
    """

    outbox: Outbox | None

    def connected(self) -> bool:
        """Does the connection still stand?"""

    def push(self, data: bytes, *, droppable: bool = False) -> None:
        """Sends a message before the answer."""

    def hang_up(self) -> None:
        """Ends it before the answer; the client resumes for the rest."""


class Streams:
    """See the head of this file.

    Args:
        ids: of events; None where streams cannot be resumed.
    """

    def __init__(self, ids: EventIds | None) -> None:
        self.standalone = Outbox(ids)
        self._open: set[Response] = set()
        self._ended: deque[tuple[float, Outbox]] = deque(maxlen=KEPT_STREAMS)

    @property
    def alive(self) -> bool:
        """Whether any of them is known to be read."""
        return self.standalone.alive or any(stream.alive for stream in self._open_outboxes())

    @property
    def any_open(self) -> bool:
        """Whether a response is being made or written."""
        return bool(self._open)

    def responding(self, response: Response) -> None:
        """A response is being made and written."""
        self._open.add(response)

    def responded(self, response: Response) -> None:
        """It is made, or never will be; what it streamed can be asked for from now on."""
        self._open.discard(response)
        if response.outbox is not None:
            self._keep(response.outbox)

    def resumable(self, number: int) -> Outbox | None:
        """The stream that an event was sent on, if it still can be taken up after it."""
        ended = (stream for _, stream in self._ended)
        for stream in (self.standalone, *self._open_outboxes(), *ended):
            if stream.knows(number):
                return stream
        return None

    @property
    def kept_bytes(self) -> int:
        """What ended streams hold for a client that may ask for them."""
        return sum(stream.size for _, stream in self._ended)

    @property
    def held_bytes(self) -> int:
        """What all its streams hold, ended or not."""
        open_ = self.standalone.size + sum(stream.size for stream in self._open_outboxes())
        return open_ + self.kept_bytes

    @property
    def kept_since(self) -> float:
        """When the first of those that it keeps ended, in monotonic seconds."""
        return self._ended[0][0] if self._ended else math.inf

    def forget_oldest(self) -> None:
        """Lets go of that one."""
        self._ended.popleft()

    def tidy(self, now: float) -> None:
        """Lets go of dead connections and of streams that nobody fetched; `now` in monotonic seconds."""
        self.standalone.release()
        for stream in self._open_outboxes():
            stream.release()
        while self._ended and now - self._ended[0][0] > KEPT_SECONDS:
            self._ended.popleft()

    def hang_up(self) -> None:
        """Lets go of all who read; what they wait for is not answered."""
        self.standalone.hang_up()
        for response in self._open:
            response.hang_up()

    def _open_outboxes(self) -> list[Outbox]:
        return [response.outbox for response in self._open if response.outbox is not None]

    def _keep(self, stream: Outbox) -> None:
        self._ended.append((time.monotonic(), stream))
        while len(self._ended) > 1 and self.kept_bytes > KEPT_BYTES:
            self._ended.popleft()
