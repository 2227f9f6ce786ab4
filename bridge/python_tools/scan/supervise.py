"""Runs a function in a child process that holds nothing up and leaves nothing behind.

Receives: a function that prints.
Sends: what the child prints, as it comes, and the way it ended as our own.
Does not know about: modules, tools. What the child starts inherits its output; an editor that waits for the
end of output would wait for a forgotten daemon, so the child gets pipes that end here.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
from collections.abc import Callable

LOOK_EVERY = 0.5
"""s between two looks at whether the editor is still there."""
MAX_ERRORS = 65_536
"""Bytes of stderr that are handed on: for the log, and a module may print for ever."""
CHUNK = 65_536


def run(work: Callable[[], None]) -> None:
    """Run `work` in a child, wait for its end, end all that it has started, and end as it did."""
    if not hasattr(os, "fork"):
        work()
        return
    pipes = {1: os.pipe(), 2: os.pipe()}
    editor = os.getppid()
    child = os.fork()
    if child == 0:
        os.setsid()
        for number, (reading, writing) in pipes.items():
            os.dup2(writing, number)
            os.close(reading)
            os.close(writing)
        work()
        os._exit(0)
    for _, writing in pipes.values():
        os.close(writing)

    def told(*_: object) -> None:
        end_group(child)
        end_as(-signal.SIGTERM)

    signal.signal(signal.SIGTERM, told)
    code = relay(child, {number: reading for number, (reading, _) in pipes.items()}, editor)
    end_group(child)
    end_as(code)


def relay(child: int, pipes: dict[int, int], editor: int) -> int:
    """Hand on what the child prints until it ends; its exit code, negative for a signal."""
    woken, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waker)
    left = {1: None, 2: MAX_ERRORS}
    with selectors.DefaultSelector() as selector:
        selector.register(woken, selectors.EVENT_READ)
        for number, reading in pipes.items():
            os.set_blocking(reading, False)
            selector.register(reading, selectors.EVENT_READ, number)
        while True:
            ended, status = os.waitpid(child, os.WNOHANG)
            ready = selector.select(0 if ended else LOOK_EVERY)
            if os.getppid() != editor:
                end_group(child)
            for key, _ in ready:
                if key.data is None:
                    os.read(woken, CHUNK)
                elif not hand_on(key.fd, key.data, left):
                    selector.unregister(key.fd)
            if ended:
                for number, reading in pipes.items():
                    while reading in selector.get_map() and hand_on(reading, number, left):
                        pass
                return os.waitstatus_to_exitcode(status)


def hand_on(reading: int, number: int, left: dict[int, int | None]) -> bool:
    """One piece; False when there is none, now or any more."""
    try:
        data = os.read(reading, CHUNK)
    except BlockingIOError:
        return False
    limit = left[number]
    kept = data if limit is None else data[:limit]
    if limit is not None:
        left[number] = limit - len(kept)
    with contextlib.suppress(OSError):
        while kept:
            kept = kept[os.write(number, kept) :]
    return bool(data)


def end_group(child: int) -> None:
    """End the child and all that it has started."""
    with contextlib.suppress(OSError):
        os.killpg(child, signal.SIGKILL)


def end_as(code: int) -> None:
    """End with an exit code, or by a signal where it is negative."""
    if code < 0 and -code != signal.SIGKILL:
        signal.signal(-code, signal.SIG_DFL)
    if code < 0:
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 1)
