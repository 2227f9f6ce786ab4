"""Processes that tests start: each in a session of its own, none outlives its run, and no way around that."""

from __future__ import annotations

import ast
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from tests.support import leaks, processes
from tests.support.nvim import ROOT, Nvim

STARTS = {
    "asyncio": "create_subprocess_exec|create_subprocess_shell",
    "multiprocessing": ".*",
    "os": "fork|forkpty|popen|system|(exec|spawn|posix_spawn).*",
    "pty": "fork|spawn",
    "subprocess": "Popen|run|call|check_.*|get.*output",
}
"""What starts processes, by module."""
EXEMPT = (
    "tests/lua/fixtures/",  # programs that the plugin starts
    "tests/support/processes.py",
    "tests/support/upstreams/",  # servers that the bridge starts
    "tests/support/python_tools/",  # tools in Python, which the plugin's process runs
)


def starts(text: str) -> Iterator[tuple[int, str]]:
    """Line and name of everything in a program that starts a process."""
    for node in ast.walk(ast.parse(text)):
        found: list[tuple[str, str]] = []
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found = [(node.value.id, node.attr)]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found = [(node.module, alias.name) for alias in node.names]
        for module, name in found:
            if re.fullmatch(STARTS.get(module, "(?!)"), name):
                yield node.lineno, f"{module}.{name}"


def test_nothing_starts_a_process_by_itself() -> None:
    """Tests, benchmarks and what supports them start processes through tests/support/processes.py alone."""
    files = [path for part in ("tests", "bench") for path in sorted((ROOT / part).rglob("*.py"))]
    names = {path: path.relative_to(ROOT).as_posix() for path in files}
    faults = [
        f"{names[path]}:{line}: {name}"
        for path in files
        if not names[path].startswith(EXEMPT)
        for line, name in starts(path.read_text())
    ]
    assert not faults, "use tests/support/processes.py:\n" + "\n".join(faults)


def test_other_ways_are_seen() -> None:
    """Calls, functions that are handed on, and imported names are found; what only looks alike is not."""
    text = (
        "from subprocess import PIPE, run\nsubprocess.Popen([])\nto_thread(os.system, '')\n"
        "asyncio.create_subprocess_exec('')\nsubprocess.PIPE\nprocesses.run([])\nos.environ\n'os.fork()'"
    )
    expected = ["subprocess.run", "subprocess.Popen", "os.system", "asyncio.create_subprocess_exec"]
    assert sorted(name for _, name in starts(text)) == sorted(expected)


def test_specs_wait_for_their_terminals() -> None:
    """They open terminals with `t.terminal()`: one that is closed before its program runs ends the editor."""
    opens = re.compile(r"vim\.cmd(?!.*McpTools).*\bterm(inal)?\b|\btermopen\b|\bpty\b")
    assert opens.search("vim.cmd('new | terminal cat')")
    specs = sorted((ROOT / "tests" / "lua").rglob("*_spec.lua"))
    assert [path.name for path in specs if opens.search(path.read_text())] == []


async def test_an_editor_has_its_own_session(spawn_nvim: Callable[..., Awaitable[Nvim]]) -> None:
    """No signal to the group of the test run reaches an editor, nor one to an editor's group the run."""
    nvim = await spawn_nvim()
    assert os.getsid(nvim.process.pid) == os.getpgid(nvim.process.pid) == nvim.process.pid


SHELL = """
import subprocess, sys
group = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=subprocess.PIPE, process_group=0)
group.stdout.readline()
"""
"""Ends when its group says so: that was all that tied the group to a shell."""
GROUP = """
import os, signal, subprocess, sys
from tests.support import processes
sleep = ["sleep", "60"]
within, stopped, apart = subprocess.Popen(sleep), subprocess.Popen(sleep), processes.begin(sleep)
signal.signal(signal.SIGHUP, signal.SIG_IGN)  # somebody has to tell
os.kill(stopped.pid, signal.SIGSTOP)
os.waitid(os.P_PID, stopped.pid, os.WSTOPPED)
print("stopped", flush=True)
print(within.wait(10), apart.poll(), file=sys.stderr)
apart.kill()
apart.wait()
"""


def test_a_group_that_is_hung_up() -> None:
    """The hang-up of an orphaned group with a stopped member reaches who is in it, not who has a session."""
    done = processes.run([sys.executable, "-c", SHELL, GROUP], cwd=ROOT, timeout=20)
    assert done.stderr.strip() == f"{-signal.SIGHUP} None"


RUN = """
from tests.support import keeper, processes
with keeper.kept():
    print(processes.begin(["sleep", "60"]).pid, flush=True)
    input()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="what is left is found by its environment, on Linux only")
def test_what_a_killed_run_has_started() -> None:
    """It is ended, though the run could do nothing about it."""
    pipe = subprocess.PIPE
    with processes.begin([sys.executable, "-c", RUN], cwd=ROOT, stdin=pipe, stdout=pipe) as run:
        assert run.stdout
        left = int(run.stdout.readline())
        assert is_alive(left)
        run.kill()
    deadline = time.monotonic() + 20
    while is_alive(left) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not is_alive(left)


def is_alive(pid: int) -> bool:
    """Whether a process runs that is not our child. Whoever inherits an ended one may bury it late."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


HEARS = """
import signal
from tests.support import processes
signal.signal(signal.SIGHUP, signal.SIG_IGN)
signal.signal(signal.SIGINT, signal.SIG_IGN)
processes.ignore_alone()
signal.raise_signal(signal.SIGHUP)
signal.raise_signal(signal.SIGINT)
print(*(processes.run(["sh", "-c", f"kill -{name} $$"]).returncode for name in ("HUP", "INT")))
"""


def test_signals_that_the_run_ignores() -> None:
    """It goes on ignoring them, as under `nohup` in the background of a script; what it starts does not."""
    done = processes.run([sys.executable, "-c", HEARS], cwd=ROOT)
    assert (done.stdout, done.stderr) == (f"{-signal.SIGHUP} {-signal.SIGINT}\n", "")


def test_a_program_that_takes_too_long() -> None:
    """What it has started is killed with it, and the failure says what was run."""
    before = set(leaks.descendants())
    with pytest.raises(subprocess.TimeoutExpired, match="sleep 60"):
        processes.run(["sh", "-c", "sleep 60; true"], timeout=0.2)
    assert not leaks.left_over(before)
