"""What a test left behind: processes below this one, also those whose parent is gone.

Every process of the run inherits a mark in its environment. On Linux that finds orphans, such as a bridge
that outlives its Neovim. (To adopt them would change what is tested: nobody would reap them at their end.)
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from pathlib import Path

MARK = "MCPT_RUN"


def mark() -> None:
    """Let whatever this process starts from now on be recognised."""
    os.environ[MARK] = str(os.getpid())


def descendants() -> dict[int, str]:
    """Every live process that this one has started, directly or not, with its command."""
    command = ["ps", "-A", "-o", "pid=,ppid=,stat=,args="]
    listing = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    output, _ = listing.communicate()
    commands: dict[int, str] = {}
    children: dict[int, list[int]] = {}
    for line in output.splitlines():
        pid, parent, state, *args = line.split(None, 3)
        if not state.startswith("Z") and int(pid) != listing.pid:
            commands[int(pid)] = args[0] if args else "?"
            children.setdefault(int(parent), []).append(int(pid))
    found = {pid for pid in commands if is_marked(pid)}
    queue = [os.getpid(), *found]
    while queue:
        below = [pid for pid in children.get(queue.pop(), []) if pid not in found]
        found.update(below)
        queue.extend(below)
    return {pid: commands[pid] for pid in found - {os.getpid()}}


def is_marked(pid: int) -> bool:
    """Whether a process has this run's mark (elsewhere than on Linux: nobody can tell)."""
    with contextlib.suppress(OSError):
        return f"\0{MARK}={os.getpid()}\0".encode() in b"\0" + Path(f"/proc/{pid}/environ").read_bytes()
    return False


def left_over(before: set[int], patience: int = 3_000) -> dict[int, str]:
    """Processes that were not there before and are still there after `patience` ms."""
    deadline = time.monotonic() + patience / 1000
    while True:
        found = {pid: args for pid, args in descendants().items() if pid not in before}
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(0.02)
