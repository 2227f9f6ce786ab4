"""Runs a function in a child process that holds nothing up and leaves nothing behind."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable
from tempfile import TemporaryFile

LOOK_EVERY = 0.2
"""s between two looks at whether the editor is still there, and how much was printed."""
MAX_PRINTED = 64 * 1024 * 1024
"""Bytes; a module that prints more is ended, as one that prints for ever would fill the disk."""
HANDED_ON = {1: MAX_PRINTED, 2: 65_536}
"""Bytes of stdout and stderr; what is left of the latter goes to the log."""


def supervised(work: Callable[[], None]) -> None:
    """Run `work` in a child, wait for its end, end all that it has started, and end as it did."""
    if not hasattr(os, "fork"):
        work()
        return
    editor = os.getppid()
    with TemporaryFile() as output, TemporaryFile() as errors:
        files = {1: output.fileno(), 2: errors.fileno()}
        child = os.fork()
        if child == 0:
            os.setsid()
            for number, file in files.items():
                os.dup2(file, number)
            work()
            os._exit(0)

        def watch() -> None:
            while os.getppid() == editor and max(os.fstat(f).st_size for f in files.values()) < MAX_PRINTED:
                time.sleep(LOOK_EVERY)
            end_group(child)

        signal.signal(signal.SIGTERM, lambda *_: end_group(child))
        threading.Thread(target=watch, daemon=True).start()
        _, status = os.waitpid(child, 0)
        end_group(child)
        for number, file in files.items():
            hand_on(os.pread(file, HANDED_ON[number], 0), number)
        end_as(os.waitstatus_to_exitcode(status))


def hand_on(data: bytes, number: int) -> None:
    """Print what the child has printed, unless nobody is there to read it."""
    with contextlib.suppress(OSError):
        while data:
            data = data[os.write(number, data) :]


def end_group(child: int) -> None:
    """End the child and all that it has started."""
    with contextlib.suppress(OSError):
        os.killpg(child, signal.SIGKILL)


def end_as(code: int) -> None:
    """End with an exit code, or by a signal where it is negative."""
    if code < 0:
        with contextlib.suppress(OSError):
            signal.signal(-code, signal.SIG_DFL)  # SIGKILL has no other way
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 1)
