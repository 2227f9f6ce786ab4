"""Checks of the fixtures and rules of the tests."""

from __future__ import annotations

import ast
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import leaks, processes
from tests.support.nvim import ROOT, Spawn


async def test_directories_of_neovim_are_private_to_the_test(spawn_nvim: Spawn, tmp_path: Path) -> None:
    nvim = await spawn_nvim(cwd=tmp_path)
    names = ["config", "data", "state", "cache", "run", "log"]
    directories = await nvim.lua("return vim.tbl_map(vim.fn.stdpath, ...)", names)
    assert all(path.startswith(str(nvim.home.path)) for path in directories)
    assert await nvim.lua("return vim.fn.getcwd()") == str(tmp_path)


async def test_a_neovim_that_exits_at_once_fails_the_test_with_its_output(spawn_nvim: Spawn) -> None:
    with pytest.raises(AssertionError, match="exit code 3"):
        await spawn_nvim(init_lua="os.exit(3)")


@pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")
def test_a_leaked_process_is_found() -> None:
    """Also after its parent has exited."""
    before = set(leaks.descendants())
    command = ["sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!"]
    orphan = int(processes.run(command, check=True).stdout)
    try:
        assert leaks.left_over(before, patience=0) == {orphan: "sleep 60"}
    finally:
        os.kill(orphan, signal.SIGKILL)
    assert not leaks.left_over(before)


def test_a_process_that_times_out_is_killed_with_its_children() -> None:
    before = set(leaks.descendants())
    with pytest.raises(subprocess.TimeoutExpired, match="sleep 60"):
        processes.run(["sh", "-c", "sleep 60; true"], timeout=0.2)
    assert not leaks.left_over(before)


STARTS = re.compile(
    r"\b(asyncio\.create_subprocess_(exec|shell)|os\.(fork|forkpty|popen|system|exec\w+|spawn\w+|posix_spawn\w*)"
    r"|pty\.(fork|spawn)|subprocess\.(Popen|run|call|check_\w+|get\w*output))"
)
EXEMPT = (
    "tests/lua/fixtures/",  # processes started by the plugin
    "tests/support/processes.py",
    "tests/support/upstreams/",  # servers started by the bridge
    "tests/support/python_tools/",  # tools run by the worker
)


def test_processes_are_started_by_tests_support_processes_only() -> None:
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


def test_specs_open_terminals_with_the_helper() -> None:
    """One that is closed before its program runs ends the editor."""
    opens = re.compile(r"vim\.cmd(?!.*McpTools).*\bterm(inal)?\b|\btermopen\b|\bpty\b")
    specs = sorted((ROOT / "tests" / "lua").rglob("*_spec.lua"))
    assert [path.name for path in specs if opens.search(path.read_text())] == []
