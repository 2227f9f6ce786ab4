"""Processes that a test left behind.

Every process of the run inherits a mark in its environment. That finds orphans too, such as a bridge that
outlives its Neovim. Where there is no /proc, nothing is found.
"""

from __future__ import annotations

import os
import time

MARK = "MCPT_RUN"

foreign: set[int] = set()
"""Live processes without the mark, which need no second look."""


def mark() -> None:
    """Mark whatever this process starts from now on."""
    os.environ[MARK] = str(os.getpid())


def descendants() -> dict[int, str]:
    """Every live process that this one has started, directly or not, with its command line."""
    try:
        live = {int(name) for name in os.listdir("/proc") if name.isdigit()}
    except FileNotFoundError:
        return {}
    foreign.intersection_update(live)
    wanted = f"\0{MARK}={os.getpid()}\0".encode()
    environments = {pid: b"\0" + read(pid, "environ") for pid in live - foreign}
    found = {pid for pid, environment in environments.items() if wanted in environment}
    # A process has no environment for a moment while it becomes another program.
    foreign.update(pid for pid, said in environments.items() if pid not in found and said != b"\0")
    commands = {pid: read(pid, "cmdline").rstrip(b"\0").replace(b"\0", b" ") for pid in found}
    return {pid: command.decode(errors="replace") for pid, command in commands.items()}


def left_over(before: set[int], patience: int = 3_000) -> dict[int, str]:
    """Processes that were not there before and are still there after `patience` ms."""
    deadline = time.monotonic() + patience / 1000
    while True:
        found = {pid: command for pid, command in descendants().items() if pid not in before}
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(0.02)


def read(pid: int, name: str) -> bytes:
    """A file of a process in /proc; empty where it has ended or belongs to another user."""
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read()
    except OSError:
        return b""
