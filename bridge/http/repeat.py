"""Requests that repeat the head of the one before them: taken as they come, without being parsed anew.

Receives: the bytes of one connection. Sends: bodies to who serves that head; all other bytes back to aiohttp.
Does not know about: guards, MCP.

A client says the same head with each call, but for the length of the body. aiohttp has parsed it and the
guards have let it pass, so there is nothing to be found in it a second time; that is a fifth of a call.
Whatever is not exactly that goes to aiohttp: another head, requests that come before the last is answered.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

_END = b"\r\n\r\n"
_LENGTH = b"\r\ncontent-length: "
_CODED = b"\r\ntransfer-encoding"
_MAX_DIGITS = 8

Serve = Callable[[bytes], Coroutine[Any, Any, bool] | None]
"""Serves a body, and tells whether the connection stays open; None = no longer: the guards look again."""


class Head(NamedTuple):
    """The head of a request as it was sent, without the number of bytes of its body."""

    before: bytes
    after: bytes


def read_head(data: bytes) -> tuple[Head, int, int] | None:
    """Splits what begins a request: its head, the length of its body, and where that begins.

    None when the head is not all there, or says nothing or something else about a body.
    """
    end = data.find(_END)
    if end < 0:
        return None
    head = data[: end + len(_END)]
    lower = head.lower()
    at = lower.find(_LENGTH) + len(_LENGTH)
    if at < len(_LENGTH) or lower.count(b"content-length") != 1 or _CODED in lower:
        return None
    until = head.find(b"\r", at)
    digits = head[at:until]
    if not digits.isdigit() or len(digits) > _MAX_DIGITS:
        return None
    return Head(head[:at], head[until:]), int(digits), len(head)


class Repeats:
    """Follows where requests begin and end on one connection."""

    __slots__ = ("_admitted", "_held", "_left", "_now", "_serve")

    def __init__(self) -> None:
        self._admitted: Head | None = None
        self._serve: Serve | None = None
        self._now: Head | None = None
        self._held = b""
        self._left: int | None = 0  # bytes of a body that aiohttp still gets; None = lost count, for good

    def admit(self, serve: Serve) -> None:
        """From now on `serve` gets the bodies that come with the head of the request that is worked on."""
        if self._left is not None:
            self._admitted, self._serve = self._now, serve

    def take(self, data: bytes, idle: bool) -> tuple[bytes, Coroutine[Any, Any, bool] | None]:
        """Judges the next bytes.

        Args:
            data: as they came.
            idle: whether the request before them was answered.

        Returns:
            What aiohttp is to get; what serves a request that repeats the head.
        """
        if self._left is None:
            return data, None
        if self._left or not idle:
            self._left = self._left - len(data) if len(data) <= self._left else None
            return data, None
        if self._held:
            data, self._held = self._held + data, b""
        missing, begin = self._missing(data)
        if missing == 0 and self._serve is not None:
            if (serving := self._serve(data[begin:])) is not None:
                return b"", serving
            self._admitted = self._serve = None
        elif missing > 0 and begin == len(data):
            self._held = data  # clients that send head and body apart
            return b"", None
        self._begin(data)
        return data, None

    def release(self) -> bytes:
        """What was kept of a request that is not all there; for aiohttp, which waits for the rest."""
        held, self._held = self._held, b""
        if held:
            self._begin(held)
        return held

    def _missing(self, data: bytes) -> tuple[int, int]:
        """How much of a body is not here yet, and where it begins; negative = the head is another."""
        head = self._admitted
        if head is None or not data.startswith(head.before):
            return -1, 0
        at = len(head.before)
        until = data.find(b"\r", at, at + _MAX_DIGITS + 1)
        digits = data[at:until] if until > 0 else b""
        if not digits.isdigit() or not data.startswith(head.after, until):
            return -1, 0
        begin = until + len(head.after)
        return int(digits) - (len(data) - begin), begin

    def _begin(self, data: bytes) -> None:
        self._now, self._left = None, None
        if (read := read_head(data)) is not None:
            self._now, length, begin = read
            left = length - (len(data) - begin)
            self._left = left if left >= 0 else None
