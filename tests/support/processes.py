"""How tests start processes: each has a session of its own, and ends with the test run.

In the group of the test run a process would get signals that are meant for others: Ctrl-C, a terminal's end,
and the hang-up that the kernel sends to a whole group that loses its last tie to a shell while one of its
members is stopped, as some tests stop editors.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Command = Sequence[str | Path]


def ignore_alone() -> None:
    """Let processes that are started from now on hear signals that this one was started to ignore.

    Under `nohup`, or in the background of a script, it ignores some, and so would they.
    """
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, lambda *_: None)  # this one goes on as before; a handler is not handed down


async def start(*command: str | Path, **options: Any) -> asyncio.subprocess.Process:
    """Start a process that is waited for on the event loop; by default its stdin is empty."""
    options.setdefault("stdin", subprocess.DEVNULL)
    return await asyncio.create_subprocess_exec(*command, start_new_session=True, **options)


def begin(command: Command, **options: Any) -> subprocess.Popen[str]:
    """Start a process that the caller blocks for, with text in its pipes; by default its stdin is empty."""
    options.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.Popen(command, start_new_session=True, text=True, **options)


def run(
    command: Command, *, timeout: float | None = None, check: bool = False, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end and keep what it says.

    Args:
        command: the program and its arguments.
        timeout: seconds that it may take; then it is killed with all that it has started.
        check: an exit code other than 0 raises.
        options: of `subprocess.Popen`.
    """
    with begin(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options) as process:
        try:
            output, errors = process.communicate(timeout=timeout)
        except BaseException:  # the time is up, or the run was interrupted
            end(process.pid)
            raise
    done = subprocess.CompletedProcess(command, process.returncode, output, errors)
    if check:
        done.check_returncode()
    return done


def end(leader: int) -> None:
    """Kill a process that was started here, and what is still in its session's first group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)
