"""The command in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mcp_tools_nvim.cli import main


class Cli:
    """Runs the command, and prepares its environment by `patch`."""

    def __init__(self, patch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.patch, self._capsys = patch, capsys

    def run(self, *words: str) -> tuple[int, str, str]:
        """Exit code, stdout and stderr."""
        return main.run(list(words)), *self._capsys.readouterr()

    def json(self, *words: str) -> Any:
        code, out, err = self.run(*words, "--json")
        assert code == 0, err
        return json.loads(out)

    def entry(self, *words: str) -> tuple[list[str], str]:
        """The command line that `config` prints, and the advice."""
        printed = self.json("config", "cursor", *words)
        server = json.loads(printed["text"])["mcpServers"]["nvim-tools"]
        return [server["command"], *server["args"]], printed["advice"]

    def install(self, directory: Path, text: str, name: str = "mcp-tools") -> Path:
        """Puts a program first on PATH."""
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / name
        path.write_text(text)
        path.chmod(0o755)
        self.patch.setenv("PATH", f"{directory}:/usr/bin:/bin")
        return path


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(monkeypatch, capsys)
