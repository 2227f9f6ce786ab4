"""Ends what a test run has started when the run cannot do so: it was killed, or gave up on a test that hangs.

Receives: a pipe that the run holds open. Sends: SIGKILL to whatever has the run's mark, once it is gone.
Does not know about: tests. Where no marks can be seen (see leaks.py) there is nothing that it could end.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.support import leaks, processes

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 10  # seconds; whoever is killed is gone as soon as the kernel gets to it
QUIET = 1.0
"""Seconds without a sight of any: a process has no mark for a moment while it becomes another program."""


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """What this process starts meanwhile ends with it, however it ends."""
    leaks.mark()
    command = [sys.executable, "-m", __spec__.name, str(os.getpid())]
    pipe = subprocess.PIPE
    with processes.begin(command, cwd=ROOT, stdin=pipe, stdout=pipe) as keeper:
        assert keeper.stdout
        assert keeper.stdout.readline(), "the keeper did not start"
        yield


def main(run: int) -> None:
    """Wait for the end of the run, and end what is left."""
    print("here", flush=True)
    sys.stdin.read()
    seen = time.monotonic()
    deadline = seen + PATIENCE
    while time.monotonic() < min(deadline, seen + QUIET):
        for pid in leaks.marked(run) - {os.getpid()}:
            seen = time.monotonic()
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


if __name__ == "__main__":
    main(int(sys.argv[1]))
