"""The test fixtures themselves: what they start answers, and what they miss would show."""

from __future__ import annotations

import ast
import os
import re
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.support import leaks, processes
from tests.support.nvim import ROOT, Nvim

Spawn = Callable[..., Awaitable[Nvim]]


async def test_folders_are_private(spawn_nvim: Spawn, tmp_path: Path) -> None:
    """Every folder that Neovim writes to lies in the test's home."""
    nvim = await spawn_nvim(cwd=tmp_path)
    places = await nvim.lua(
        "return vim.tbl_map(vim.fn.stdpath, {'config', 'data', 'state', 'cache', 'run', 'log'})"
    )
    assert all(place.startswith(str(nvim.home.path)) for place in places)
    assert await nvim.lua("return vim.fn.getcwd()") == str(tmp_path)


async def test_broken_init_is_reported(spawn_nvim: Spawn) -> None:
    """A Neovim that ends at once fails the test with what it said."""
    with pytest.raises(AssertionError, match="exit code 3"):
        await spawn_nvim(init_lua="os.exit(3)")


@pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")
def test_leaked_processes_are_seen() -> None:
    """A process that is left running is found, also when its parent has ended, and not once it has ended."""
    before = set(leaks.descendants())
    command = ["sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!"]
    orphan = int(processes.run(command, check=True).stdout)
    try:
        assert leaks.left_over(before, patience=0) == {orphan: "sleep 60"}
    finally:
        os.kill(orphan, signal.SIGKILL)
    assert not leaks.left_over(before)


def test_a_program_that_takes_too_long() -> None:
    """What it has started is killed with it, and the failure says what was run."""
    before = set(leaks.descendants())
    with pytest.raises(subprocess.TimeoutExpired, match="sleep 60"):
        processes.run(["sh", "-c", "sleep 60; true"], timeout=0.2)
    assert not leaks.left_over(before)


STARTS = re.compile(
    r"\b(asyncio\.create_subprocess_(exec|shell)|os\.(fork|forkpty|popen|system|exec\w+|spawn\w+|posix_spawn\w*)"
    r"|pty\.(fork|spawn)|subprocess\.(Popen|run|call|check_\w+|get\w*output))"
)
EXEMPT = (
    "tests/lua/fixtures/",  # programs that the plugin starts
    "tests/support/processes.py",
    "tests/support/upstreams/",  # servers that the bridge starts
    "tests/support/python_tools/",  # tools in Python, which the plugin's process runs
)


def test_processes_are_started_in_one_place() -> None:
    """Tests and benchmarks start processes through tests/support/processes.py, each with its own session."""
    files = [path for part in ("tests", "bench") for path in sorted((ROOT / part).rglob("*.py"))]
    names = {path: path.relative_to(ROOT).as_posix() for path in files}
    found = [
        f"{names[path]}:{node.lineno}: {ast.unparse(node)}"
        for path in files
        if not names[path].startswith(EXEMPT)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and STARTS.fullmatch(ast.unparse(node))
    ]
    assert found == []


def test_specs_wait_for_their_terminals() -> None:
    """They open terminals with `t.terminal()`: one that is closed before its program runs ends the editor."""
    opens = re.compile(r"vim\.cmd(?!.*McpTools).*\bterm(inal)?\b|\btermopen\b|\bpty\b")
    specs = sorted((ROOT / "tests" / "lua").rglob("*_spec.lua"))
    assert [path.name for path in specs if opens.search(path.read_text())] == []
