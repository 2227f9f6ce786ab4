"""Lines of what a server prints, of which none takes more memory than it may.

Receives: bytes as they come. Sends: lines; of one that is too long its edges.
Does not know about: processes.
"""

from __future__ import annotations

import re

from mcp.shared.message import SessionMessage
from mcp_types import ErrorData, JSONRPCError

TOO_LARGE = -32005
_FIRST = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,18})(?!\d|\s*,\s*"method")')
_LAST = re.compile(rb'"id"\s*:\s*(\d{1,18})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z')
"""Where the id of a message stands, and none that is part of a result."""


class PerSecond:
    """Lets so many of something pass in a second; the rest is for nobody."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._since = -1.0
        self._count = 0

    def passes(self, now: float) -> bool:
        """Does one more pass? `now` in seconds."""
        if now - self._since >= 1:
            self._since, self._count = now, 0
        self._count += 1
        return self._count <= self._most


def refusal(line: bytes, code: int, message: str) -> SessionMessage | None:
    """The error for whoever waits for a message that cannot be read, when its edges say which it is."""
    found = _FIRST.match(line) or _LAST.search(line[-Lines.EDGE :])
    if found is None:
        return None
    error = ErrorData(code=code, message=message)
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=int(found[1]), error=error))


class Overlong(bytes):
    """What is kept of a line that was too long: its beginning and its end."""

    size = 0

    def answer(self, limit: int) -> SessionMessage | None:
        """The error for whoever waits for this message, when it says so."""
        return refusal(self, TOO_LARGE, f"the answer has {self.size} bytes, the limit is {limit}")


class Lines:
    """Cuts bytes into lines, of which each has at most `limit`.

    Args:
        limit: bytes.
        cut: the beginning of a longer one is given, else an `Overlong`.
    """

    EDGE = 512

    def __init__(self, limit: int, *, cut: bool = False) -> None:
        self._limit = limit
        self._cut = cut
        self._parts: list[bytes] = []
        self._size = 0
        self._tail = b""

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that are whole now."""
        *whole, rest = data.split(b"\n")
        lines = []
        for part in whole:
            self._add(part)
            lines.append(self._take())
        self._add(rest)
        return lines

    def _add(self, part: bytes) -> None:
        was_whole = self._size <= self._limit
        self._size += len(part)
        if was_whole:
            self._parts.append(part)
            if self._size > self._limit:
                whole = b"".join(self._parts)
                self._parts = [whole[: self._limit if self._cut else self.EDGE]]
                self._tail = whole[-self.EDGE :]
        else:
            self._tail = (self._tail + part)[-self.EDGE :]

    def _take(self) -> bytes:
        line = b"".join(self._parts)
        if self._size > self._limit and not self._cut:
            line = Overlong(line + b"\n" + self._tail)
            line.size = self._size
        self._parts, self._size, self._tail = [], 0, b""
        return line
