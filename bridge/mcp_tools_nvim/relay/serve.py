"""Serves MCP on stdin and stdout until the client ends."""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from typing import BinaryIO

from .pump import Find, Pump

MAX_LINE = 64 * 1024 * 1024
"""Bytes; the bridge refuses larger messages itself."""

ANSWER_SECONDS = 30.0
"""After the end of stdin, for what was asked before it."""


def serve(find: Find) -> int:
    """Relays lines until stdin ends or a signal comes; returns the exit code."""
    out = sys.stdout.buffer
    # What else prints must not come between the messages.
    sys.stdout = sys.stderr

    def write(line: bytes) -> None:
        try:
            out.write(line + b"\n")
            out.flush()
        except (OSError, ValueError):
            os.kill(os.getpid(), signal.SIGTERM)  # nobody reads any more

    pump = Pump(find, write)
    _end_on_signal(pump)
    for line in _lines(sys.stdin.buffer):
        pump.take(line)
    # Whoever pipes messages into it reads the answers; a client that is gone does not.
    deadline = time.monotonic() + ANSWER_SECONDS
    pump.finish(lambda: time.monotonic() < deadline and _is_read(out.fileno()))
    pump.close()
    return 0


def _end_on_signal(pump: Pump) -> None:
    """Closes the pump and ends the process at the first signal.

    A handler alone would not do: Python runs it in the main thread, which misses a signal that comes just
    before it waits for stdin.
    """
    reading, writing = socket.socketpair()
    writing.setblocking(False)
    signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(each) != signal.SIG_IGN:
            signal.signal(each, lambda *_: None)

    def end() -> None:
        reading.recv(1)
        writing.detach()  # stays open for signals that follow
        pump.close()
        os._exit(0)

    threading.Thread(target=end, daemon=True).start()


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
