"""Serves MCP on stdin and stdout until the client ends.

Receives: lines on stdin, signals. Sends: lines on stdout. Does not know about: which bridge is meant.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from .pump import Find, Pump

MAX_LINE = 64 * 1024 * 1024
"""Bytes; the bridge refuses larger messages itself."""


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
            os._exit(0)  # nobody reads any more, and no thread has anything to finish

    def end(*_: Any) -> None:
        raise _Ended

    signal.signal(signal.SIGTERM, end)
    pump = Pump(find, write)
    try:
        while line := sys.stdin.buffer.readline(MAX_LINE):
            if line := line.strip():
                pump.take(line)
        pump.close()
    except (_Ended, KeyboardInterrupt):
        pump.close(0.0)
    return 0
