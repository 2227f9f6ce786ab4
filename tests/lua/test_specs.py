"""Every Lua spec on every Neovim; see run.lua for what a spec may use."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.support import processes
from tests.support.nvim import Home

HERE = Path(__file__).resolve().parent
SLOW = (
    "bridge/control_spec.lua",
    "bridge/process_spec.lua",
    "bridge/supervisor_spec.lua",
    "command/command_spec.lua",
    "editor/git/changes_spec.lua",
    "editor/git/init_spec.lua",
    "editor/lsp/core_spec.lua",
    "editor/lsp/double_change_spec.lua",
    "editor/lsp/double_diagnostics_spec.lua",
    "editor/lsp/double_edit_spec.lua",
    "editor/lsp/double_spec.lua",
    "editor/lsp/double_trial_spec.lua",
    "editor/lsp/double_words_spec.lua",
    "editor/process/init_spec.lua",
    "editor/symbol/project_spec.lua",
    "files/paths_spec.lua",
    "files/repository_spec.lua",
    "health/health_spec.lua",
    "ide/ide_spec.lua",
    "log_spec.lua",
    "prompts/prompts_spec.lua",
    "resources/resources_spec.lua",
    "schema/bounds_spec.lua",
    "schema/laws_spec.lua",
    "tools/buffer_access_spec.lua",
    "tools/buffer_edit_spec.lua",
    "tools/dap/breakpoints_spec.lua",
    "tools/dap/configurations_spec.lua",
    "tools/dap/end_spec.lua",
    "tools/dap/person_spec.lua",
    "tools/dap/runner_debug_spec.lua",
    "tools/dap/running_spec.lua",
    "tools/dap/session_spec.lua",
    "tools/dap/variables_spec.lua",
    "tools/diagnostics_python_spec.lua",
    "tools/diagnostics_typescript_spec.lua",
    "tools/every_arguments_spec.lua",
    "tools/every_number_spec.lua",
    "tools/every_sensitive_spec.lua",
    "tools/every_unobtrusive_spec.lua",
    "tools/file_move_buffers_spec.lua",
    "tools/file_move_python_spec.lua",
    "tools/file_move_spec.lua",
    "tools/file_search_spec.lua",
    "tools/git_spec.lua",
    "tools/lsp_cold_python_spec.lua",
    "tools/lsp_cold_typescript_spec.lua",
    "tools/lsp_python_spec.lua",
    "tools/lsp_typescript_spec.lua",
    "tools/runner_neotest_spec.lua",
    "tools/runner_pytest_spec.lua",
    "tools/runner_spec.lua",
    "tools/shell_spec.lua",
    "tools/symbol_python_spec.lua",
    "tools/symbol_spec.lua",
    "tools/symbol_typescript_spec.lua",
    "tools/treesitter_spec.lua",
    "ui/activity_spec.lua",
    "ui/approval/client_spec.lua",
)
"""They start processes, wait for one that does not answer, or go through everything that there is."""
SPECS = [
    pytest.param(path, id=name, marks=[pytest.mark.slow] if name in SLOW else [])
    for path in sorted(HERE.rglob("*_spec.lua"))
    for name in [path.relative_to(HERE).as_posix()]
]


DAP_SPECS = [
    pytest.param(path, id=path.stem)
    for path in sorted((HERE / "tools" / "dap").glob("*_spec.lua"))
    if path.stem != "missing_spec"
]
"""They debug programs, by the tests' own client of debug adapters (support/dap_client/) or by nvim-dap."""


def run(spec: Path, nvim_program: Path, home: Home, **variables: str) -> None:
    """Fails with the tests of a spec that have failed."""
    # A `python3` that a version manager put on PATH is a shell script, which costs more than what it starts.
    programs = home.make("bin")
    (programs / "python3").symlink_to(Path(sys.executable).resolve())
    environment = home.environment() | variables
    environment["PATH"] = f"{programs}:{environment['PATH']}"
    command = [nvim_program, "--headless", "-u", "NONE", "-i", "NONE", "-n", "-l", HERE / "run.lua", spec]
    done = processes.run(command, cwd=home.make("cwd"), env=environment, timeout=50)
    report = "\n".join(line for line in done.stdout.splitlines() if not line.startswith("ok - "))
    assert done.returncode == 0, f"{report}\n{done.stderr}"


@pytest.mark.parametrize("spec", SPECS)
def test_spec(spec: Path, nvim_program: Path, home: Home) -> None:
    """All tests of the spec pass."""
    run(spec, nvim_program, home)


@pytest.mark.slow
@pytest.mark.skipif("NVIM_DAP_PATH" not in os.environ, reason="NVIM_DAP_PATH names no checkout of nvim-dap")
@pytest.mark.parametrize("spec", DAP_SPECS)
def test_with_nvim_dap(spec: Path, nvim_program: Path, home: Home) -> None:
    """The tools that debug do with nvim-dap what they do with the tests' own client."""
    run(spec, nvim_program, home, DAP_CLIENT=os.environ["NVIM_DAP_PATH"])


@pytest.mark.slow
@pytest.mark.skipif("NEOTEST_PATH" not in os.environ, reason="NEOTEST_PATH names no checkouts of neotest")
def test_with_neotest(nvim_program: Path, home: Home) -> None:
    """Tests are run by neotest as by what stands for it; the variable has nvim-nio and plenary.nvim, too."""
    spec = HERE / "tools" / "runner_neotest_spec.lua"
    run(spec, nvim_program, home, NEOTEST_PATH=os.environ["NEOTEST_PATH"])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["codecompanion", "avante", "mcphub"])
def test_with_assistant(name: str, nvim_program: Path, home: Home) -> None:
    """They run our tools as our own seams do; a variable has their checkout, and plenary.nvim's."""
    variable = name.upper()
    checkouts = os.environ.get(f"{variable}_PATH")
    if not checkouts:
        pytest.skip(f"{variable}_PATH names no checkouts of {name}.nvim and plenary.nvim")
    if "nvim-0.10" in str(nvim_program) and name != "mcphub":
        pytest.skip(f"{name}.nvim needs Neovim 0.11")
    run(HERE / "hosts" / f"{name}_spec.lua", nvim_program, home, **{variable: checkouts})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "spec"),
    [("claudecode", "claudecode"), ("opencode_nvim", "integrations"), ("sidekick", "integrations")],
)
def test_with_neighbour(name: str, spec: str, nvim_program: Path, home: Home) -> None:
    """What is read of plugins for agents is what they have; a variable has a checkout of each."""
    variable = name.upper()
    checkout = os.environ.get(f"{variable}_PATH")
    if not checkout:
        pytest.skip(f"{variable}_PATH names no checkout of that plugin")
    if "nvim-0.10" in str(nvim_program) and name == "sidekick":
        pytest.skip("sidekick.nvim needs Neovim 0.11")
    run(HERE / "ide" / f"{spec}_spec.lua", nvim_program, home, **{variable: checkout})
