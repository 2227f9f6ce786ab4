"""Starts processes for tests, each in its own session.

In the process group of the test run they would get its signals: Ctrl-C, the end of the terminal, and the
hang-up that the kernel sends to an orphaned group with a stopped member, since some tests stop editors.
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
    """Prevents new processes from inheriting signals that are ignored, as under `nohup`."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, lambda *_: None)  # a handler is not inherited


async def start(*command: str | Path, **options: Any) -> asyncio.subprocess.Process:
    """Starts a process on the event loop; by default its stdin is empty."""
    options.setdefault("stdin", subprocess.DEVNULL)
    return await asyncio.create_subprocess_exec(*command, start_new_session=True, **options)


def begin(command: Command, **options: Any) -> subprocess.Popen[str]:
    """Starts a process without the event loop, with text pipes; by default its stdin is empty."""
    options.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.Popen(command, start_new_session=True, text=True, **options)


def run(
    command: Command, *, timeout: float | None = None, check: bool = False, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Runs a program to its end and captures its output.

    Args:
        command: the program and its arguments.
        timeout: in seconds; then the program and its children are killed.
        check: an exit code other than 0 raises.
        options: of `subprocess.Popen`.
    """
    with begin(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options) as process:
        try:
            output, errors = process.communicate(timeout=timeout)
        except BaseException:  # timeout or interrupt
            end(process.pid)
            raise
    done = subprocess.CompletedProcess(command, process.returncode, output, errors)
    if check:
        done.check_returncode()
    return done


def end(leader: int) -> None:
    """Kills a process that was started here, with its process group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)
