"""Threads for functions that block: as many as are needed, up to a bound, none waited for at the end.

Receives: jobs that never raise. Sends: each to a thread that has nothing else to do.
Does not know about: tools, calls. (An executor of the standard library waits for its threads when Python
ends; one that never ends would keep the host alive.)
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

LIMIT = 64
"""More calls at a time than people and agents make; each idle thread costs some kB."""


class BusyError(Exception):
    """Every thread is at work."""


class Threads:
    """A pool of daemon threads."""

    def __init__(self, limit: int = LIMIT) -> None:
        self.limit = limit
        self._jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0
        self._count = 0

    def run(self, job: Callable[[], None]) -> None:
        """Run a job in a thread of its own; raises BusyError."""
        with self._lock:
            if self._idle > 0:
                self._idle -= 1
            elif self._count < self.limit:
                self._count += 1
                threading.Thread(target=self._work, name=f"tool-{self._count}", daemon=True).start()
            else:
                raise BusyError(f"{self.limit} Python tools run already")
        self._jobs.put(job)

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            job()
            del job  # what it holds must not live until the next one comes
            with self._lock:
                self._idle += 1
