"""Serves MCP on stdin and stdout until the client ends.

Receives: lines on stdin, signals. Sends: lines on stdout. Does not know about: which bridge is meant.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any, BinaryIO

from .pump import Find, Pump

MAX_LINE = 64 * 1024 * 1024
"""Bytes; the bridge refuses larger messages itself."""

ANSWER_SECONDS = 30.0
"""After the end of stdin, for what was asked before it."""


class _Ended(Exception):
    """By a signal."""


def serve(find: Find) -> int:
    """Relays lines; gives the exit code."""
    out = sys.stdout.buffer
    # What else prints must not come between the messages.
    sys.stdout = sys.stderr

    def write(line: bytes) -> None:
        try:
            out.write(line + b"\n")
            out.flush()
        except (OSError, ValueError):
            os.kill(os.getpid(), signal.SIGTERM)  # nobody reads any more

    ended = False

    def end(*_: Any) -> None:
        nonlocal ended
        if not ended:  # more may follow, one for each answer that nobody reads
            ended = True
            raise _Ended

    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(each) != signal.SIG_IGN:
            signal.signal(each, end)
    pump = Pump(find, write)
    try:
        for line in _lines(sys.stdin.buffer):
            pump.take(line)
        # Whoever pipes messages into it reads the answers; a client that is gone does not.
        deadline = time.monotonic() + ANSWER_SECONDS
        pump.finish(lambda: time.monotonic() < deadline and _is_read(out.fileno()))
    except _Ended:
        pass
    ended = True
    pump.close()
    return 0


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    """Those that say something; of one that is too long its beginning alone, which is no message."""
    is_rest = False
    while part := stream.readline(MAX_LINE):
        line, was_rest = part.strip(), is_rest
        is_rest = len(part) == MAX_LINE and not part.endswith(b"\n")
        if was_rest:
            continue
        if is_rest:
            line = line[:1]
        if line:
            yield line


def _is_read(pipe: int) -> bool:
    """Whether there is still somebody at the other end."""
    if not hasattr(select, "poll"):
        return True
    poll = select.poll()
    poll.register(pipe, 0)
    return not any(event & (select.POLLERR | select.POLLHUP | select.POLLNVAL) for _, event in poll.poll(0))
