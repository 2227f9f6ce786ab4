"""Which program `connect` writes into the configuration of a client."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from mcp_tools_nvim.cli import program
from mcp_tools_nvim.cli.main import run
from tests.support import processes

CONSOLE_SCRIPT = f"""#!{sys.executable}
import sys
from mcp_tools_nvim.__main__ import script
if __name__ == "__main__":
    sys.exit(script())
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, beside an empty home directory; PATH has no more than the system's programs."""
    for name in ("home", "project"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "project"


def install(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Puts a program called `mcp-tools` first on PATH."""
    folder.mkdir(parents=True)
    path = folder / "mcp-tools"
    path.write_text(text)
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return path


def entry(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[list[str], str]:
    """The command line that `config` prints, and the advice."""
    assert run(["config", "cursor", *words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    server = json.loads(told["text"])["mcpServers"]["nvim-tools"]
    return [server["command"], *server["args"]], told["advice"]


def test_another_program_of_that_name_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor is it run to find out what it is."""
    install(tmp_path / "bin", f"#!/bin/sh\ntouch {tmp_path}/ran\n", monkeypatch)
    command, _ = entry(capsys)
    assert command[1:] == ["-I", str(program.PACKAGE), "stdio"]
    assert Path(command[0]).is_absolute()
    _, advice = entry(capsys, "--project")
    assert f"{tmp_path}/bin/mcp-tools is another program" in advice
    assert not (tmp_path / "ran").exists()


def test_a_user_gets_the_absolute_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The client may have another PATH."""
    path = install(tmp_path / "bin", CONSOLE_SCRIPT, monkeypatch)
    command, advice = entry(capsys)
    assert command == [str(path), "stdio"]
    assert "PATH" not in advice


def test_a_program_of_a_project_or_an_environment_is_not_taken(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It may be hostile, or go."""
    install(project / "bin", CONSOLE_SCRIPT, monkeypatch)
    assert entry(capsys)[0][1] == "-I"
    install(tmp_path / "venv" / "bin", CONSOLE_SCRIPT, monkeypatch)
    (tmp_path / "venv" / "pyvenv.cfg").touch()
    assert entry(capsys)[0][1] == "-I"


def test_directories_of_path_that_cannot_be_read_are_left_out(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as those of another user, which a container or `su` may leave in PATH."""
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    monkeypatch.setenv("PATH", f"/{'x' * 300}/bin:{loop}:/usr/bin:/bin")
    assert entry(capsys)[0][-1] == "stdio"


def test_a_project_gets_the_name_of_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A path of one machine is of no use to others, who are told what they need."""
    command, advice = entry(capsys, "--project")
    assert command == ["mcp-tools", "stdio"]
    assert "here it is not: pipx install" in advice
    install(tmp_path / "bin", CONSOLE_SCRIPT, monkeypatch)
    assert entry(capsys, "--project")[0] == ["mcp-tools", "stdio"]
    assert "everyone who has the command mcp-tools on PATH." in entry(capsys, "--project")[1]


def test_what_is_written_starts_this_program(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """In any directory, and whatever modules it has."""
    command, _ = entry(capsys)
    (tmp_path / "project" / "json.py").write_text("raise SystemExit('ran')\n")
    done = processes.run([*command[:-1], "--version"], cwd=tmp_path / "project")
    assert (done.returncode, done.stdout.split()[0]) == (0, "mcp-tools")
