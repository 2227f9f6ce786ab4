"""Every Lua spec; see run.lua for what a spec may use.

A spec runs on the required Neovim. Its first line may change that: `-- slow` leaves it out of
`make test-quick`, `-- every Neovim` runs it on each supported one, `-- slow, every Neovim` does both.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support import plugins, processes
from tests.support.nvim import Home

HERE = Path(__file__).resolve().parent
pytestmark = pytest.mark.timeout(120)
MARKS = {"slow": pytest.mark.slow, "every Neovim": pytest.mark.every_nvim}


def marks_of(spec: Path) -> set[str]:
    """The marks in the first line of a spec."""
    with spec.open() as file:
        words = re.sub(r"^-- ", "", file.readline().rstrip("\n")).split(", ")
    return set(words) if set(words) <= MARKS.keys() else set()


def specs(*, every: bool) -> list[Any]:
    """The specs that run on every Neovim, or those that run on one."""
    return [
        pytest.param(spec, id=spec.relative_to(HERE).as_posix(), marks=[MARKS[name] for name in marks])
        for spec in sorted(HERE.rglob("*_spec.lua"))
        for marks in [marks_of(spec)]
        if ("every Neovim" in marks) == every
    ]


def run(spec: Path, nvim_program: Path, home: Home, **variables: str) -> None:
    """Fails with the tests of a spec that have failed."""
    # A `python3` that a version manager put on PATH is a shell script, which costs more than what it starts.
    programs = home.make("bin")
    (programs / "python3").symlink_to(Path(sys.executable).resolve())
    environment = home.environment() | variables
    environment["PATH"] = f"{programs}:{environment['PATH']}"
    command = [nvim_program, "--headless", "-u", "NONE", "-i", "NONE", "-n", "-l", HERE / "run.lua", spec]
    done = processes.run(command, cwd=home.make("cwd"), env=environment, timeout=110)
    report = "\n".join(line for line in done.stdout.splitlines() if not line.startswith("ok - "))
    assert done.returncode == 0, f"{report}\n{done.stderr}"
    assert " tests, 0 failed, " in done.stdout, report  # Neovim exits with 0 if a test waits for input


@pytest.mark.parametrize("spec", specs(every=False))
def test_spec(spec: Path, nvim_program: Path, home: Home) -> None:
    """All tests of the spec pass."""
    run(spec, nvim_program, home)


@pytest.mark.every_nvim
@pytest.mark.parametrize("spec", specs(every=True))
def test_spec_on_every_neovim(spec: Path, nvim_program: Path, home: Home) -> None:
    """All tests of the spec pass."""
    run(spec, nvim_program, home)


# With the plugins themselves ------------------------------------------------------------------------------

DAP_SPECS = [
    pytest.param(path, id=path.stem)
    for path in sorted((HERE / "tools" / "debug").glob("*_spec.lua"))
    if path.stem != "missing_spec"
]
"""They debug with the tests' own client of debug adapters (support/dap_client/), or with nvim-dap."""


@pytest.mark.nightly
@pytest.mark.parametrize("spec", DAP_SPECS)
def test_with_nvim_dap(spec: Path, nvim_program: Path, home: Home) -> None:
    """The debugger tools behave the same with nvim-dap."""
    run(spec, nvim_program, home, DAP_CLIENT=plugins.path("nvim-dap"))


@pytest.mark.nightly
def test_with_neotest(nvim_program: Path, home: Home) -> None:
    """The test tool works with neotest."""
    paths = plugins.path("neotest", "nvim-nio", "plenary.nvim")
    run(HERE / "tools" / "test_run_neotest_spec.lua", nvim_program, home, NEOTEST_PATH=paths)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("spec", "variable", "plugin"),
    [
        ("callers/codecompanion", "CODECOMPANION", "codecompanion.nvim"),
        ("callers/avante", "AVANTE", "avante.nvim"),
        ("callers/mcphub", "MCPHUB", "mcphub.nvim"),
        ("agents/integrations", "CLAUDECODE", "claudecode.nvim"),
        ("agents/integrations", "OPENCODE_NVIM", "opencode.nvim"),
        ("agents/integrations", "SIDEKICK", "sidekick.nvim"),
    ],
)
def test_with_plugin(spec: str, variable: str, plugin: str, nvim_program: Path, home: Home) -> None:
    """The integration works with the plugin."""
    needed = [plugin, "plenary.nvim"] if spec.startswith("callers/") else [plugin]
    run(HERE / f"{spec}_spec.lua", nvim_program, home, **{variable: plugins.path(*needed)})


EXPLORERS = {
    "oil": ["oil.nvim"],
    "minifiles": ["mini.nvim"],
    "neo-tree": ["neo-tree.nvim", "nui.nvim", "plenary.nvim"],
    "NvimTree": ["nvim-tree.lua"],
    "snacks_picker_input": ["snacks.nvim"],
    "TelescopePrompt": ["telescope.nvim", "plenary.nvim"],
}
"""Filetype → plugins."""


@pytest.mark.nightly
@pytest.mark.parametrize("filetype", EXPLORERS)
def test_with_explorer(filetype: str, nvim_program: Path, home: Home) -> None:
    """The files that are selected in the plugin are found."""
    variables = {"EXPLORER": filetype, "EXPLORER_PATH": plugins.path(*EXPLORERS[filetype])}
    run(HERE / "agents" / "explorers_spec.lua", nvim_program, home, **variables)
