"""Rules for single tools in the settings of clients; other rules, comments and their order stay."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from mcp_tools_nvim.client_config import change, permissions
from mcp_tools_nvim.client_config.change import Change, ChangeError
from mcp_tools_nvim.client_config.client import AiClient, Permissions, Stdio
from mcp_tools_nvim.client_config.formats import value_at
from mcp_tools_nvim.client_config.known import CLIENTS

TOOLS = ["nvim_file_read", "nvim_git_log"]
WITH_RULES = [name for name, client in CLIENTS.items() if isinstance(client.permissions, Permissions)]
LIST_RULES = """{
  // mine
  "permissions": {
    "deny": ["mcp__nvim-tools__nvim_git_log"],
    "allow": [
      "Bash(git log:*)", // first
      "mcp__nvim-tools", "mcp__nvim-tools__*",
      "mcp__other__nvim_file_read"
    ]
  },
  "theme": "dark"
}
"""


def rules_of(client: AiClient) -> Permissions:
    return permissions.rules_of(client, "user")


def path_of(client: AiClient) -> Path:
    path = change.resolve(rules_of(client).file, Path())
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def connect(client: AiClient, root: Path, tools: list[str] = TOOLS) -> list[Change]:
    entry = change.add_entry(client, Stdio("mcp-tools", ("stdio",)), "user", root)
    return permissions.add_permissions([entry], rules_of(client), tools, root)


def disconnect(client: AiClient, root: Path) -> list[Change]:
    return permissions.remove_permissions([change.remove_entry(client, "user", root)], client, root)


def write(changes: list[Change]) -> None:
    change.apply([each for each in changes if not each.is_empty])


def allowed(client: AiClient) -> Any:
    text, path = path_of(client).read_text(), rules_of(client).path
    return value_at(json.loads(text.replace("// mine", "")), path) if path else tomllib.loads(text)["rule"]


@pytest.mark.parametrize("name", WITH_RULES)
def test_rules_are_added_once_extended_and_removed(name: str, tmp_path: Path) -> None:
    client = CLIENTS[name]
    write(connect(client, tmp_path))
    assert all(each.is_empty for each in connect(client, tmp_path))
    assert all(tool in path_of(client).read_text() for tool in TOOLS)
    write(connect(client, tmp_path, [*TOOLS, "nvim_git_show"]))
    assert "nvim_git_show" in path_of(client).read_text()
    write(disconnect(client, tmp_path))
    assert not path_of(client).exists()
    assert all(each.is_empty for each in disconnect(client, tmp_path))
    assert permissions.remove_permissions([], client, tmp_path) == []


def test_each_client_gets_its_own_format(tmp_path: Path) -> None:
    for name in WITH_RULES:
        write(connect(CLIENTS[name], tmp_path))
    named = [f"mcp__nvim-tools__{tool}" for tool in TOOLS]
    assert allowed(CLIENTS["claude-code"]) == allowed(CLIENTS["qwen-code"]) == named
    assert allowed(CLIENTS["opencode"]) == {f"nvim-tools_{tool}": "allow" for tool in TOOLS}
    rule = {"mcpName": "nvim-tools", "toolName": TOOLS, "decision": "allow", "priority": 1}
    assert allowed(CLIENTS["gemini-cli"]) == [rule]


@pytest.mark.parametrize("name", ["claude-code", "qwen-code"])
def test_rules_of_the_user_in_a_list_are_not_changed(name: str, tmp_path: Path) -> None:
    """Also rules for the whole server and for other servers."""
    client, text = CLIENTS[name], LIST_RULES
    path_of(client).write_text(text)
    unchanged = [Change(path_of(client), text, text)]
    write(permissions.add_permissions(unchanged, rules_of(client), TOOLS, tmp_path))
    added = path_of(client).read_text()
    assert "// mine" in added
    order = [added.index(each) for each in ("// first", "mcp__other", "mcp__nvim-tools__nvim_file_read")]
    assert order == sorted(order)
    write(permissions.remove_permissions([], client, tmp_path))
    assert path_of(client).read_text() == text


def test_rules_of_the_user_in_an_object_are_not_changed(tmp_path: Path) -> None:
    client = CLIENTS["opencode"]
    text = """{
  // mine
  "permission": {
    "*": "ask",
    "nvim-tools_*": "ask",
    "nvim-tools_nvim_git_log": "deny" // never
  }
}
"""
    path_of(client).write_text(text)
    write(permissions.add_permissions([], rules_of(client), TOOLS, tmp_path))
    added = path_of(client).read_text()
    assert '"nvim-tools_nvim_git_log": "deny"' in added
    assert added.index("nvim-tools_*") < added.index("nvim-tools_nvim_file_read")  # the last match applies
    write(permissions.remove_permissions([], client, tmp_path))
    assert path_of(client).read_text() == text


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("claude-code", '{"permissions": {"allow": {"a": 1}}}', "permissions.allow: not a list"),
        ("claude-code", '{"permissions": [1]}', "permissions"),
        ("qwen-code", "{", "Fix it first"),
        ("opencode", '{"permission": "ask"}', 'permission: write {"\\*": "ask"} instead'),
        ("gemini-cli", "theirs", "not a file of this server"),
    ],
)
def test_a_file_that_cannot_be_edited_is_refused(name: str, text: str, why: str, tmp_path: Path) -> None:
    path_of(CLIENTS[name]).write_text(text)
    with pytest.raises(ChangeError, match=why):
        permissions.add_permissions([], rules_of(CLIENTS[name]), TOOLS, tmp_path)
    assert path_of(CLIENTS[name]).read_text() == text


def test_an_invalid_file_without_our_rules_is_not_changed(tmp_path: Path) -> None:
    for name in WITH_RULES:
        path_of(CLIENTS[name]).write_text("{ broken")
        assert permissions.remove_permissions([], CLIENTS[name], tmp_path) == []


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("codex", "Codex: it runs tools that only read without asking; omit --permissions"),
        ("copilot-cli", "without asking"),
        ("cursor", "Cursor: no settings for single tools are known; omit --permissions"),
    ],
)
def test_clients_without_rules_say_why(name: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(ChangeError, match=why):
        permissions.rules_of(CLIENTS[name], "user")
    unchanged = [Change(tmp_path / "x", None, None)]
    assert permissions.remove_permissions(unchanged, CLIENTS[name], tmp_path) == unchanged


@pytest.mark.parametrize("name", WITH_RULES)
def test_a_project_gets_no_rules_and_a_server_with_our_name_is_a_warning(name: str, tmp_path: Path) -> None:
    client = CLIENTS[name]
    with pytest.raises(ChangeError, match="omit --project"):
        permissions.rules_of(client, "project")
    rules, project = rules_of(client), tmp_path / "project"
    below = project / "below"
    below.mkdir(parents=True)
    assert permissions.note(client, rules, below).startswith("The rules apply to any server named nvim-tools")
    for file in rules.project_files:
        for directory in (below, project):
            path = directory / file
            path.parent.mkdir(exist_ok=True)
            for text in (json.dumps({client.path[0]: {"nvim-tools": {}}}), "{ broken"):
                path.write_text(text)
                assert permissions.note(client, rules, below).startswith(f"WARNING: {path} defines")
            path.unlink()
    path.symlink_to("/dev/null")
    assert permissions.note(client, rules, below).startswith("WARNING")
