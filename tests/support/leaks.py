"""What a test left behind: processes below this one, also those whose parent is gone.

On Linux the test run adopts orphans, so a bridge that outlives its Neovim is found here too.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time

PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def descendants() -> dict[int, str]:
    """Every live process below this one, with its command."""
    command = ["ps", "-A", "-o", "pid=,ppid=,stat=,args="]
    listing = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    output, _ = listing.communicate()
    rows = [line.split(None, 3) for line in output.splitlines()]
    children: dict[int, list[tuple[int, str]]] = {}
    for pid, parent, state, *args in rows:
        if not state.startswith("Z") and int(pid) != listing.pid:
            children.setdefault(int(parent), []).append((int(pid), args[0] if args else "?"))
    found: dict[int, str] = {}
    queue = [os.getpid()]
    while queue:
        for pid, args in children.get(queue.pop(), []):
            found[pid] = args
            queue.append(pid)
    return found


def left_over(before: set[int], patience: int = 3_000) -> dict[int, str]:
    """Processes that were not there before and are still there after `patience` ms."""
    deadline = time.monotonic() + patience / 1000
    while True:
        found = {pid: args for pid, args in descendants().items() if pid not in before}
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(0.02)
