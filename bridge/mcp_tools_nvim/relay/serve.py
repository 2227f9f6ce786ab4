"""Serves MCP on stdin and stdout until the client exits."""

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

from .pump import FindBridge, Pump

MAX_LINE = 64 * 1024 * 1024
"""Maximum bytes of a line; the bridge refuses smaller ones that are too large."""

ANSWER_SECONDS = 30.0
"""Time after the end of stdin to answer earlier requests."""


def serve(find: FindBridge) -> int:
    """Relays lines until stdin ends or a signal comes; returns the exit code."""
    out = sys.stdout.buffer
    # Output of other code must not come between the messages.
    sys.stdout = sys.stderr

    def write(line: bytes) -> None:
        try:
            out.write(line + b"\n")
            out.flush()
        except (OSError, ValueError):
            os.kill(os.getpid(), signal.SIGTERM)  # the client has closed the pipe

    pump = Pump(find, write)
    end_on_signal(pump)
    for line in _lines(sys.stdin.buffer):
        pump.on_line(line)
    # A script that pipes messages in still reads the answers; a client that exited does not.
    deadline = time.monotonic() + ANSWER_SECONDS
    pump.finish(lambda: time.monotonic() < deadline and _is_read(out.fileno()))
    pump.close()
    return 0


def end_on_signal(pump: Pump) -> None:
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
    """Yields non-empty lines; of a line that is too long its first byte only, which is not a message."""
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
    """Whether the other end of a pipe is still open."""
    if not hasattr(select, "poll"):
        return True
    poll = select.poll()
    poll.register(pipe, 0)
    return not any(event & (select.POLLERR | select.POLLHUP | select.POLLNVAL) for _, event in poll.poll(0))
