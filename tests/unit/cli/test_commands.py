"""The command without an editor: errors with advice, and completion for shells."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from mcp_tools_nvim.cli.main import run
from mcp_tools_nvim.cli.show import Exit
from tests.support import processes


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home directory."""
    for name in [each for each in os.environ if each.startswith(("NVIM", "XDG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["connect", "zed", "--http", "--env", "NVIM_TOKEN", "--yes"], "Zed supports no variables"),
        (["config", "copilot-cli", "--http", "--env", "NVIM_TOKEN"], "Copilot CLI supports no variables"),
        (["connect", "cursor", "--env", "NVIM_TOKEN", "--yes"], "only --http uses a token"),
        (["connect", "cursor", "--http", "--env", "A B", "--yes"], "not a valid variable name"),
        (["connect", "cursor", "--http", "--env", "", "--yes"], "not a valid variable name"),
        (["call", "echo", '{"value": NaN}'], "not valid JSON"),
        (["call", "echo", '{"value": 1e999}'], "not valid JSON"),
        (["call", "echo", '{"value": "\\ud800"}'], "not valid JSON"),
        (["config", "goose", "--project"], "no project configuration"),
    ],
)
def test_invalid_options_are_refused_and_nothing_is_written(
    words: list[str], error: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == Exit.USAGE
    assert error in capsys.readouterr().err
    assert list(home.iterdir()) == []


def test_a_directory_that_cannot_be_read_is_reported_for_its_client(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "/" + "x" * 300)
    assert run(["clients", "--json"]) == Exit.OK
    states = {each["name"]: each["state"] for each in json.loads(capsys.readouterr().out)}
    assert states["cursor"] == "not connected"
    assert "File name too long" in states["amp"]


@pytest.mark.parametrize(
    ("script", "found"),
    [('exec {python} "$@"', "base"), ("exit 127", "own"), ("echo {directory}/gone", "own")],
)
def test_a_shim_is_replaced_by_the_program_that_it_runs(
    script: str,
    found: str,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shim = tmp_path_factory.mktemp("elsewhere") / "shims" / "python3"
    shim.parent.mkdir()
    shim.write_text("#!/bin/sh\n" + script.format(python=sys.executable, directory=tmp_path) + "\n")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", str(shim.parent))
    assert run(["config", "cursor", "--json"]) == Exit.OK
    entry = json.loads(json.loads(capsys.readouterr().out)["text"])["mcpServers"]["nvim-tools"]
    base = getattr(sys, "_base_executable", sys.executable)
    assert entry["command"] == (base if found == "base" else sys.executable)


def test_missing_packages_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "tomlkit", None)
    monkeypatch.delitem(sys.modules, "mcp_tools_nvim.client_config.formats.toml", raising=False)
    assert run(["config", "codex"]) == Exit.FAILED
    assert "tomlkit" in capsys.readouterr().err


def test_completion_omits_names_that_a_shell_would_execute(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(["completion", "bash"]) == Exit.OK
    program = tmp_path / "mcp-tools"
    program.write_text("#!/bin/sh\necho 'fs__read  Reads.'\necho 'fs__$(touch${IFS}ran)  Runs.'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    script = capsys.readouterr().out + "COMP_WORDS=(mcp-tools call fs) COMP_CWORD=2; _mcp_tools\n"
    done = processes.run(["bash", "-c", script + 'echo "${COMPREPLY[@]}"'], cwd=tmp_path, check=True)
    assert done.stdout == "fs__read\n"
    assert not (tmp_path / "ran").exists()


def test_errors_contain_no_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["connect", "\x1b[2Jcursor"]) == Exit.USAGE
    printed = capsys.readouterr().err
    assert "\x1b" not in printed
    assert "cursor is unknown" in printed


@pytest.mark.parametrize(("typed", "near"), [("claude", "claude-code"), ("Cursr", "cursor")])
def test_a_misspelled_client_gets_a_suggestion(
    typed: str, near: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["config", typed]) == Exit.USAGE
    assert f"did you mean {near}?" in capsys.readouterr().err
    assert run(["config", "nothing-like-it"]) == Exit.USAGE
    assert "did you mean" not in capsys.readouterr().err
