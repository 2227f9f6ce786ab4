"""What a test left behind: processes below this one, also those whose parent is gone.

Every process of the run inherits a mark in its environment. On Linux that finds orphans, such as a bridge
that outlives its Neovim. (To adopt them would change what is tested: nobody would reap them at their end.)
Every test looks twice, so a look is cheap: what was found to be somebody else's is not looked at again.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from . import processes

MARK = "MCPT_RUN"
LINUX = Path("/proc/self/environ").exists()

foreign: set[int] = set()
"""Live processes that are nothing of ours; a number is not given again within a test."""


def mark() -> None:
    """Let whatever this process starts from now on be recognised."""
    os.environ[MARK] = str(os.getpid())


def descendants() -> dict[int, str]:
    """Every live process that this one has started, directly or not, with its command."""
    return seen_by_kernel() if LINUX else seen_by_ps()


def seen_by_kernel() -> dict[int, str]:
    """The same from /proc."""
    live = {int(name) for name in os.listdir("/proc") if name.isdigit()}
    foreign.intersection_update(live)
    unknown = live - foreign - {os.getpid()}
    found = {pid for pid in unknown if is_marked(pid, os.getpid())}
    parents = {pid: parent for pid in unknown - found for parent in parent_of(pid)}
    found |= below({os.getpid(), *found}, parents.items())
    foreign.update(unknown - found)
    return {pid: command_of(pid) for pid in found}


def seen_by_ps() -> dict[int, str]:
    """The same from ps, which does not show marks."""
    listing = processes.begin(["ps", "-A", "-o", "pid=,ppid=,stat=,args="], stdout=subprocess.PIPE)
    output, _ = listing.communicate()
    commands: dict[int, str] = {}
    parents: dict[int, int] = {}
    for line in output.splitlines():
        pid, parent, state, *args = line.split(None, 3)
        if not state.startswith("Z") and int(pid) != listing.pid:
            commands[int(pid)] = args[0] if args else "?"
            parents[int(pid)] = int(parent)
    return {pid: commands[pid] for pid in below({os.getpid()}, parents.items())}


def below(roots: set[int], parents: Iterable[tuple[int, int]]) -> set[int]:
    """Children of the roots, their children, and so on, out of pairs of a process and its parent."""
    children: dict[int, list[int]] = {}
    for pid, parent in parents:
        children.setdefault(parent, []).append(pid)
    found: set[int] = set()
    queue = list(roots)
    while queue:
        new = [pid for pid in children.get(queue.pop(), []) if pid not in found]
        found.update(new)
        queue.extend(new)
    return found


def marked(run: int) -> set[int]:
    """Every live process with the mark of a run; none where marks cannot be seen."""
    live = os.listdir("/proc") if LINUX else []
    return {int(name) for name in live if name.isdigit() and is_marked(int(name), run)}


def is_marked(pid: int, run: int) -> bool:
    """Whether a process has a run's mark; one that has ended has none."""
    return f"\0{MARK}={run}\0".encode() in b"\0" + read(pid, "environ")


def parent_of(pid: int) -> Iterator[int]:
    """The parent of a process, unless it has ended."""
    state, parent, *_ = read(pid, "stat").rpartition(b") ")[2].split(None, 2) or (b"Z", b"0")
    if state != b"Z":
        yield int(parent)


def command_of(pid: int) -> str:
    """The command line of a process; it has none while it becomes another program."""
    return read(pid, "cmdline").rstrip(b"\0").replace(b"\0", b" ").decode(errors="replace")


def read(pid: int, name: str) -> bytes:
    """What the kernel says of a process; nothing of one that is gone or not ours."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/{name}", "rb") as file:
        return file.read()
    return b""


def left_over(before: set[int], patience: int = 3_000) -> dict[int, str]:
    """Processes that were not there before and are still there after `patience` ms."""
    deadline = time.monotonic() + patience / 1000
    while True:
        found = {pid: args for pid, args in descendants().items() if pid not in before}
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(0.02)
