"""Processes that a test left running.

Every process of the run inherits a mark in its environment, which also finds orphans, such as a bridge that
outlives its Neovim. Without /proc nothing is found.
"""

from __future__ import annotations

import os
import time

MARK = "MCPT_RUN"

foreign: set[int] = set()
"""Processes without the mark."""


def mark() -> None:
    """Marks all processes started from now on."""
    os.environ[MARK] = str(os.getpid())


def descendants() -> dict[int, str]:
    """The running descendants of this process, with their command lines."""
    try:
        live = {int(name) for name in os.listdir("/proc") if name.isdigit()}
    except FileNotFoundError:
        return {}
    foreign.intersection_update(live)
    wanted = f"\0{MARK}={os.getpid()}\0".encode()
    environments = {pid: b"\0" + read(pid, "environ") for pid in live - foreign}
    found = {pid for pid, environment in environments.items() if wanted in environment}
    # During exec a process has no environment for a moment.
    foreign.update(pid for pid, variables in environments.items() if pid not in found and variables != b"\0")
    commands = {pid: read(pid, "cmdline").rstrip(b"\0").replace(b"\0", b" ") for pid in found}
    return {pid: command.decode(errors="replace") for pid, command in commands.items()}


def left_over(before: set[int], patience: int = 3_000) -> dict[int, str]:
    """New processes that still run after `patience` ms."""
    deadline = time.monotonic() + patience / 1000
    while True:
        found = {pid: command for pid, command in descendants().items() if pid not in before}
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(0.02)


def read(pid: int, name: str) -> bytes:
    """A file of a process in /proc; empty if it has ended or belongs to another user."""
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read()
    except OSError:
        return b""
