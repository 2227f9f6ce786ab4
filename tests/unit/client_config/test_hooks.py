"""Our hooks in the files of clients; everything else stays the same."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from mcp_tools_nvim.client_config import change, hooks
from mcp_tools_nvim.client_config.change import Change, ChangeError
from mcp_tools_nvim.client_config.client import AiClient, ConfigLevel, Stdio
from mcp_tools_nvim.client_config.known import CLIENTS

COMMAND = ["sh", "-c", "…", "/usr/bin/python3", "/my plugins/bridge/mcp_tools_nvim/relay/hook.py", "agent"]
PROJECT = ["sh", "-c", "…", "mcp-tools", "hook", "agent"]
OLD = ["/usr/bin/python3", "-I", "/my plugins/bridge/mcp_tools_nvim/relay/hook.py", "agent"]
WITH_HOOKS = [name for name, client in CLIENTS.items() if client.hooks]
SHARED = [name for name in WITH_HOOKS if not (hooks_of := CLIENTS[name].hooks) or not hooks_of.is_own]

Levels = tuple[ConfigLevel, list[str]]
LEVELS: list[Levels] = [("user", COMMAND), ("project", PROJECT)]


def write(changes: list[Change]) -> None:
    change.apply([each for each in changes if not each.is_empty])


def connect(client: AiClient, root: Path, level: ConfigLevel, command: list[str]) -> list[Change]:
    entry = change.add_entry(client, Stdio("mcp-tools", ("stdio",)), level, root)
    return hooks.add_hooks(entry, client, command, level, root)


def disconnect(client: AiClient, root: Path, level: ConfigLevel) -> list[Change]:
    return hooks.remove_hooks(change.remove_entry(client, level, root), client, level, root)


def path_of(client: AiClient, root: Path, level: ConfigLevel) -> Path:
    return change.resolve(client.hooks.files[level], root)


def existing(name: str, root: Path, text: str) -> Path:
    """Writes the user's file of a client."""
    path = path_of(CLIENTS[name], root, "user")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", WITH_HOOKS)
@pytest.mark.parametrize(("level", "command"), LEVELS)
def test_hooks_are_written_once(name: str, level: ConfigLevel, command: list[str], tmp_path: Path) -> None:
    client = CLIENTS[name]
    write(connect(client, tmp_path, level, command))
    path = path_of(client, tmp_path, level)
    assert path.is_relative_to(tmp_path)
    assert command[3] in path.read_text()
    assert all(each.is_empty for each in connect(client, tmp_path, level, command))
    moved = connect(client, tmp_path, level, COMMAND)
    assert moved[-1].is_empty is (command == COMMAND)
    write(connect(client, tmp_path, level, OLD))
    write(connect(client, tmp_path, level, command))
    assert OLD[1] not in re.split(r"[\s\"]+", path.read_text())
    write(disconnect(client, tmp_path, level))
    assert not path.exists()
    assert all(each.is_empty for each in disconnect(client, tmp_path, level))


@pytest.mark.parametrize("name", SHARED)
def test_hooks_of_others_are_not_changed(name: str, tmp_path: Path) -> None:
    client = CLIENTS[name]
    start, _, tool = client.hooks.events
    text = """{
  // mine
  "theme": "dark",
  "hooks": {
    "%s": [
      { "hooks": [{ "type": "command", "command": "mine.sh" }] } // first
    ],
    "Stop": [],
    "%s": [{"matcher": "x", "hooks": [{"type": "command", "command": "/opt/hook.py"}]}]
  }
}
"""
    path = existing(name, tmp_path, text % (start, tool))

    def entry(now: str) -> Change:
        """An unchanged entry, which may be in the same file."""
        is_same = name in ("gemini-cli", "qwen-code")
        return Change(path, now, now) if is_same else Change(tmp_path / "other", None, None)

    write(hooks.add_hooks(entry(path.read_text()), client, COMMAND, "user", tmp_path))
    added = path.read_text()
    for line in ("// mine", "// first", '"mine.sh"', '"Stop": []', '"/opt/hook.py"'):
        assert line in added
    assert added.count("mcp_tools_nvim/relay/hook.py") == 3
    write(hooks.remove_hooks(entry(added), client, "user", tmp_path))
    assert path.read_text() == text % (start, tool)


def test_time_limits_have_the_unit_of_the_client(tmp_path: Path) -> None:
    def limits(name: str) -> set[int]:
        client = CLIENTS[name]
        text = connect(client, tmp_path, "project", PROJECT)[-1].after or ""
        return {run["timeout"] for each in json.loads(text)["hooks"].values() for run in each[0]["hooks"]}

    assert limits("gemini-cli") == {5000}
    for name in ("claude-code", "codex", "copilot-cli", "qwen-code"):
        assert limits(name) == {5}


def test_a_foreign_file_is_refused(tmp_path: Path) -> None:
    for name in ("opencode", "copilot-cli"):
        path = existing(name, tmp_path, "theirs")
        with pytest.raises(ChangeError, match="not a file of this server"):
            connect(CLIENTS[name], tmp_path, "user", COMMAND)
        write(disconnect(CLIENTS[name], tmp_path, "user"))
        assert path.read_text() == "theirs"


def test_an_event_without_hooks_gets_ours(tmp_path: Path) -> None:
    path = existing("claude-code", tmp_path, '{"hooks": {"PostToolUse": []}}')
    write(connect(CLIENTS["claude-code"], tmp_path, "user", COMMAND))
    assert len(json.loads(path.read_text())["hooks"]["PostToolUse"]) == 1


@pytest.mark.parametrize(
    "text", ['{"hooks": [1]}', '{"hooks": "x"}', '{"hooks": {"SessionStart": {"a": 1}}}', "{", '{"hooks": 1}']
)
def test_an_invalid_file_is_refused(text: str, tmp_path: Path) -> None:
    path = existing("claude-code", tmp_path, text)
    with pytest.raises(ChangeError):
        connect(CLIENTS["claude-code"], tmp_path, "user", COMMAND)
    assert path.read_text() == text


def test_clients_without_hooks_say_so(tmp_path: Path) -> None:
    with pytest.raises(ChangeError, match="Cursor has no user hooks"):
        connect(CLIENTS["cursor"], tmp_path, "user", COMMAND)
    path = existing("codex", tmp_path, "{}\n")
    write(disconnect(CLIENTS["codex"], tmp_path, "user"))
    assert path.read_text() == "{}\n"
