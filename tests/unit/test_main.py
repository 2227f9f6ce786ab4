"""The package as a program, run from a checkout."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support import processes
from tests.support.nvim import ROOT

PACKAGE = ROOT / "bridge" / "mcp_tools_nvim"


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Runs the package in a directory, as Neovim does."""
    return processes.run([sys.executable, "-I", str(PACKAGE), *arguments], timeout=50, cwd=cwd)


def test_a_checkout_runs_the_command_in_any_directory(tmp_path: Path) -> None:
    (tmp_path / "mcp_tools_nvim.py").write_text("raise SystemExit('the module of a project was imported')\n")
    done = run("--version", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("mcp-tools ")


def test_an_unknown_subcommand_is_a_usage_error(tmp_path: Path) -> None:
    done = run("no/such.thing", cwd=tmp_path)
    assert done.returncode == 2
    assert "invalid choice" in done.stderr


def test_processes_started_by_tools_can_import_the_package(tmp_path: Path) -> None:
    """And nothing else of the checkout."""
    (tmp_path / "tool.py").write_text(
        "import importlib.util\n"
        "from mcp_tools_nvim.python_tools import mcp_tool\n"
        "def name(_):\n    return mcp_tool.__module__, importlib.util.find_spec('tests')\n"
        "def main():\n"
        "    from multiprocessing import get_context\n"
        "    with get_context('spawn').Pool(1) as pool:\n"
        "        print(*pool.map(name, [0]))\n"
    )
    code = (
        f"import runpy, sys\nsys.argv = [{str(PACKAGE)!r}, '--version']\n"
        f"try:\n    runpy.run_path({str(PACKAGE)!r}, run_name='__main__')\nexcept SystemExit:\n    pass\n"
        f"sys.path += [{str(tmp_path)!r}, {str(PACKAGE.parent)!r}]\nimport tool\ntool.main()\n"
    )
    done = processes.run([sys.executable, "-I", "-c", code], timeout=50, cwd=tmp_path)
    assert done.stdout.splitlines()[-1] == "('mcp_tools_nvim.python_tools.decorator', None)", done.stderr
