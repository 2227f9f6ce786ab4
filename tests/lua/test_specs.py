"""Every Lua spec on every Neovim; see run.lua for what a spec may use."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support import processes
from tests.support.nvim import Home

HERE = Path(__file__).resolve().parent
SLOW = (
    "bridge/process_spec.lua",
    "bridge/supervisor_spec.lua",
    "editor/git_changes_spec.lua",
    "editor/git_spec.lua",
    "editor/lsp/core_spec.lua",
    "editor/process_spec.lua",
    "prompts/prompts_spec.lua",
)
"""They start processes, or wait for one that does not answer."""
SPECS = [
    pytest.param(path, id=name, marks=[pytest.mark.slow] if name in SLOW else [])
    for path in sorted(HERE.rglob("*_spec.lua"))
    for name in [path.relative_to(HERE).as_posix()]
]


@pytest.mark.parametrize("spec", SPECS)
def test_spec(spec: Path, nvim_program: Path, home: Home) -> None:
    """All tests of the spec pass."""
    # A `python3` that a version manager put on PATH is a shell script, which costs more than what it starts.
    programs = home.make("bin")
    (programs / "python3").symlink_to(Path(sys.executable).resolve())
    environment = home.environment()
    environment["PATH"] = f"{programs}:{environment['PATH']}"
    command = [nvim_program, "--headless", "-u", "NONE", "-i", "NONE", "-n", "-l", HERE / "run.lua", spec]
    done = processes.run(command, cwd=home.make("cwd"), env=environment, timeout=50)
    report = "\n".join(line for line in done.stdout.splitlines() if not line.startswith("ok - "))
    assert done.returncode == 0, f"{report}\n{done.stderr}"
