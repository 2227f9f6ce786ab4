"""The package as a program, and which program `connect` writes into the configuration of a client."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from mcp_tools_nvim.cli import program
from mcp_tools_nvim.client_config.client import ConfigLevel
from mcp_tools_nvim.instances.files import home_of_account
from tests.support import processes
from tests.support.nvim import ROOT

from .conftest import Cli

CONSOLE_SCRIPT = f"""#!{sys.executable}
import sys
from mcp_tools_nvim.__main__ import script
if __name__ == "__main__":
    sys.exit(script())
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with an empty home directory and only system programs on PATH."""
    for name in ("home", "project"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "project"


def test_another_program_of_the_same_name_is_neither_written_nor_run(tmp_path: Path, cli: Cli) -> None:
    cli.install(tmp_path / "bin", f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    command, _ = cli.entry()
    assert command[1:] == ["-I", str(program.PACKAGE), "stdio"]
    assert Path(command[0]).is_absolute()
    assert f"{tmp_path}/bin/mcp-tools is another program" in cli.entry("--project")[1]
    assert not (tmp_path / "ran").exists()


def test_user_settings_get_the_absolute_path(tmp_path: Path, cli: Cli) -> None:
    path = cli.install(tmp_path / "bin", CONSOLE_SCRIPT)
    command, advice = cli.entry()
    assert command == [str(path), "stdio"]
    assert "PATH" not in advice


def test_a_program_in_a_project_or_virtual_environment_is_not_used(project: Path, cli: Cli) -> None:
    cli.install(project / "bin", CONSOLE_SCRIPT)
    assert cli.entry()[0][1] == "-I"
    venv = project.parent / "venv"
    cli.install(venv / "bin", CONSOLE_SCRIPT)
    (venv / "pyvenv.cfg").touch()
    assert cli.entry()[0][1] == "-I"


def test_unreadable_directories_of_path_are_ignored(tmp_path: Path, cli: Cli) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    cli.patch.setenv("PATH", f"/{'x' * 300}/bin:{loop}:/usr/bin:/bin")
    assert cli.entry()[0][-1] == "stdio"


def test_project_settings_get_the_name_of_the_command(tmp_path: Path, cli: Cli) -> None:
    command, advice = cli.entry("--project")
    assert command == ["mcp-tools", "stdio"]
    assert "here it is not: pipx install" in advice
    cli.install(tmp_path / "bin", CONSOLE_SCRIPT)
    command, advice = cli.entry("--project")
    assert command == ["mcp-tools", "stdio"]
    assert "everyone who has the command mcp-tools on PATH." in advice


def test_the_written_command_starts_this_program_in_any_directory(project: Path, cli: Cli) -> None:
    (project / "json.py").write_text("raise SystemExit('ran')\n")
    done = processes.run([*cli.entry()[0][:-1], "--version"], cwd=project)
    assert (done.returncode, done.stdout.split()[0]) == (0, "mcp-tools")


@pytest.mark.parametrize("scope", ["user", "project"])
def test_a_hook_succeeds_where_the_plugin_is_missing(scope: ConfigLevel, project: Path, cli: Cli) -> None:
    """With 2, the code of Python for a missing file, it would block the prompt."""
    cli.patch.setattr(program, "PACKAGE", project.parent / "the user's plugins" / "mcp_tools_nvim")
    line = program.hook_line(scope, project, "claude")
    for command in (line, ["sh", "-c", shlex.join(line)]):
        done = processes.run(command, stdin=subprocess.DEVNULL)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    if scope == "user":
        hook = program.PACKAGE / "relay" / "hook.py"
        hook.parent.mkdir(parents=True)
        hook.write_text("import sys\nprint(sys.flags.isolated, *sys.argv[1:])\n")
    else:
        cli.install(project.parent / "a bin", '#!/bin/sh\necho "$@"\n')
    for command in (line, ["sh", "-c", shlex.join(line)]):
        done = processes.run(command, stdin=subprocess.DEVNULL)
        assert done.stdout == ("1 claude\n" if scope == "user" else "hook claude\n")


def test_hooks_that_look_elsewhere_for_editors_are_reported(project: Path, cli: Cli) -> None:
    cli.patch.delenv("XDG_STATE_HOME", raising=False)
    for home, is_reported in ((project.parent, True), (Path(home_of_account()), False)):
        cli.patch.setenv("HOME", str(home))
        for client in ("claude-code", "codex"):
            advice = cli.json("connect", client, "--hooks", "--dry-run")["advice"]
            assert (f"below {home_of_account()}" in advice) is is_reported
            assert ("choose Restart in `/daemon`" in advice) is (is_reported and client == "codex")


PACKAGE = ROOT / "bridge" / "mcp_tools_nvim"


def run_package(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Runs the package in a directory, as Neovim does."""
    return processes.run([sys.executable, "-I", str(PACKAGE), *arguments], timeout=50, cwd=cwd)


def test_a_checkout_runs_the_command_in_any_directory(tmp_path: Path) -> None:
    (tmp_path / "mcp_tools_nvim.py").write_text("raise SystemExit('the module of a project was imported')\n")
    done = run_package("--version", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("mcp-tools ")


def test_an_unknown_subcommand_is_a_usage_error(tmp_path: Path) -> None:
    done = run_package("no/such.thing", cwd=tmp_path)
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
