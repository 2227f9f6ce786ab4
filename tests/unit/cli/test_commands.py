"""The command without an editor: what it refuses, saying what to do, and what it prints for shells."""

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
    """A person's folders, with nothing in them."""
    for name in [each for each in os.environ if each.startswith(("NVIM", "XDG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


@pytest.mark.parametrize(
    ("words", "said"),
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
def test_what_does_not_fit(
    words: list[str], said: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A variable that was named for the token, for example, where the file would hold the token itself."""
    assert run(words) == Exit.USAGE
    assert said in capsys.readouterr().err
    assert list(home.iterdir()) == []


def test_folders_that_cannot_be_looked_at(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are told for the client whose they are; the others are listed as ever."""
    monkeypatch.setenv("XDG_CONFIG_HOME", "/" + "x" * 300)
    assert run(["clients", "--json"]) == Exit.OK
    states = {each["name"]: each["state"] for each in json.loads(capsys.readouterr().out)}
    assert states["cursor"] == "not connected"
    assert "File name too long" in states["amp"]


@pytest.mark.parametrize(
    ("script", "found"), [('exec {python} "$@"', "base"), ("exit 127", "own"), ("echo {folder}/gone", "own")]
)
def test_a_shim_of_a_version_manager(
    script: str,
    found: str,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A client that a desktop starts cannot run it, and so it gets what the shim would run."""
    shim = tmp_path_factory.mktemp("elsewhere") / "shims" / "python3"
    shim.parent.mkdir()
    shim.write_text("#!/bin/sh\n" + script.format(python=sys.executable, folder=tmp_path) + "\n")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", str(shim.parent))
    assert run(["config", "cursor", "--json"]) == Exit.OK
    entry = json.loads(json.loads(capsys.readouterr().out)["text"])["mcpServers"]["nvim-tools"]
    base = getattr(sys, "_base_executable", sys.executable)
    assert entry["command"] == (base if found == "base" else sys.executable)


def test_a_library_that_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The text says which."""
    monkeypatch.setitem(sys.modules, "tomlkit", None)
    monkeypatch.delitem(sys.modules, "mcp_tools_nvim.client_config.formats.toml", raising=False)
    assert run(["config", "codex"]) == Exit.FAILED
    assert "tomlkit" in capsys.readouterr().err


def test_names_that_a_shell_would_run(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Servers choose the names of their tools; bash expands what it completes, so these are left out."""
    assert run(["completion", "bash"]) == Exit.OK
    program = tmp_path / "mcp-tools"
    program.write_text("#!/bin/sh\necho 'fs__read  Reads.'\necho 'fs__$(touch${IFS}ran)  Runs.'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    script = capsys.readouterr().out + "COMP_WORDS=(mcp-tools call fs) COMP_CWORD=2; _mcp_tools\n"
    done = processes.run(["bash", "-c", script + 'echo "${COMPREPLY[@]}"'], cwd=tmp_path, check=True)
    assert done.stdout == "fs__read\n"
    assert not (tmp_path / "ran").exists()


def test_what_a_terminal_would_act_on(capsys: pytest.CaptureFixture[str]) -> None:
    """It is in no error, whosever words these are."""
    assert run(["connect", "\x1b[2Jcursor"]) == Exit.USAGE
    said = capsys.readouterr().err
    assert "\x1b" not in said
    assert "cursor is unknown" in said


@pytest.mark.parametrize(("typed", "near"), [("claude", "claude-code"), ("Cursr", "cursor")])
def test_a_client_that_was_meant(typed: str, near: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A name that is none leads to the one that is."""
    assert run(["config", typed]) == Exit.USAGE
    assert f"did you mean {near}?" in capsys.readouterr().err
    assert run(["config", "nothing-like-it"]) == Exit.USAGE
    assert "did you mean" not in capsys.readouterr().err
