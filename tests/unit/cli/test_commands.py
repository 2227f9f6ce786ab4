"""The command without an editor: errors with advice, and completion for shells."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from mcp_tools_nvim.cli.show import Exit
from tests.support import processes

from .conftest import Cli


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
        *(
            (["connect", "cursor", "--http", "--env", name, "--yes"], "not a valid variable")
            for name in ("A B", "")
        ),
        *(
            (["call", "echo", f'{{"value": {value}}}'], "not valid JSON")
            for value in ("NaN", "1e999", r'"\ud800"')
        ),
        (["config", "goose", "--project"], "no project configuration"),
    ],
)
def test_invalid_options_are_refused(words: list[str], error: str, home: Path, cli: Cli) -> None:
    """Nothing is written."""
    code, _, printed = cli.run(*words)
    assert (code, error in printed) == (Exit.USAGE, True), printed
    assert list(home.iterdir()) == []


def test_a_directory_that_cannot_be_read_is_reported_for_its_client(cli: Cli) -> None:
    cli.patch.setenv("XDG_CONFIG_HOME", "/" + "x" * 300)
    states = {each["name"]: each["state"] for each in cli.json("clients")}
    assert states["cursor"] == "not connected"
    assert "File name too long" in states["amp"]


@pytest.mark.parametrize(
    ("script", "found"),
    [('exec {python} "$@"', "base"), ("exit 127", "own"), ("echo {directory}/gone", "own")],
)
def test_a_shim_is_replaced_by_the_program_that_it_runs(
    script: str, found: str, tmp_path_factory: pytest.TempPathFactory, cli: Cli
) -> None:
    directory = tmp_path_factory.mktemp("elsewhere")
    text = "#!/bin/sh\n" + script.format(python=sys.executable, directory=directory) + "\n"
    shim = cli.install(directory / "shims", text, "python3")
    cli.patch.setenv("PATH", str(shim.parent))
    base = getattr(sys, "_base_executable", sys.executable)
    assert cli.entry()[0][0] == (base if found == "base" else sys.executable)


def test_missing_packages_are_named(cli: Cli) -> None:
    cli.patch.setitem(sys.modules, "tomlkit", None)
    cli.patch.delitem(sys.modules, "mcp_tools_nvim.client_config.formats.toml", raising=False)
    code, _, error = cli.run("config", "codex")
    assert (code, "tomlkit" in error) == (Exit.FAILED, True)


def test_completion_omits_names_that_a_shell_would_execute(tmp_path: Path, cli: Cli) -> None:
    code, script, _ = cli.run("completion", "bash")
    assert code == Exit.OK
    listing = "#!/bin/sh\necho 'fs__read  Reads.'\necho 'fs__$(touch${IFS}ran)  Runs.'\n"
    cli.install(tmp_path, listing)
    script += 'COMP_WORDS=(mcp-tools call fs) COMP_CWORD=2; _mcp_tools\necho "${COMPREPLY[@]}"'
    done = processes.run(["bash", "-c", script], cwd=tmp_path, check=True)
    assert done.stdout == "fs__read\n"
    assert not (tmp_path / "ran").exists()


def test_errors_contain_no_control_characters(cli: Cli) -> None:
    code, _, error = cli.run("connect", "\x1b[2Jcursor")
    assert (code, "\x1b" in error, "cursor is unknown" in error) == (Exit.USAGE, False, True)


def test_a_misspelled_client_gets_a_suggestion(cli: Cli) -> None:
    for typed, near in (("claude", "claude-code?"), ("Cursr", "cursor?"), ("nothing-like-it", None)):
        code, _, error = cli.run("config", typed)
        assert (code, error.partition("did you mean ")[2].split()[:1]) == (Exit.USAGE, [near] if near else [])
