"""Changes of clients' files on the disk lose nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from mcp_tools_nvim.client_config import change
from mcp_tools_nvim.client_config.change import Change, ChangeError
from mcp_tools_nvim.client_config.client import NAME, AiClient, Http, Stdio, place
from mcp_tools_nvim.client_config.formats import value_at
from mcp_tools_nvim.client_config.known import CLIENTS
from tests.support import processes

SERVER = Stdio("python3", ("mcp_tools_nvim", "stdio"))
TOKEN = "0123456789abcdef"
HTTP = Http("http://127.0.0.1:1234/mcp", TOKEN)
CURSOR = CLIENTS["cursor"]

VARIABLES = {
    "CLAUDE_CONFIG_DIR": ("claude-code", ".claude.json"),
    "CODEX_HOME": ("codex", "config.toml"),
    "CONTINUE_GLOBAL_DIR": ("continue-dev", f"mcpServers/{NAME}.json"),
    "COPILOT_HOME": ("copilot-cli", "mcp-config.json"),
    "GEMINI_CLI_HOME": ("gemini-cli", ".gemini/settings.json"),
    "QWEN_HOME": ("qwen-code", "settings.json"),
    "XDG_CONFIG_HOME": ("opencode", "opencode/opencode.json"),
}
"""Variables that move the files of a client: the client, and the new file."""


def write(
    client: AiClient, server: Stdio | Http = SERVER, scope: change.ConfigLevel = "user", root: Path = Path()
) -> Path:
    made = change.add_entry(client, server, scope, root)
    change.apply([made])
    return made.path


def existing(name: str, text: str | bytes) -> Path:
    """Writes the user's configuration file of a client."""
    path = place(CLIENTS[name].files["user"])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def git(directory: Path, *words: str) -> str:
    return processes.run(["git", "-C", str(directory), *words], check=True).stdout.strip()


def undo(client: AiClient, scope: change.ConfigLevel = "user", root: Path = Path()) -> None:
    made = change.remove_entry(client, scope, root)
    change.apply([made])


@pytest.mark.parametrize("name", CLIENTS)
@pytest.mark.parametrize("server", [SERVER, HTTP, Http(HTTP.url, TOKEN, "NVIM_TOKEN")])
def test_every_client_is_connected_and_disconnected(name: str, server: Stdio | Http, tmp_path: Path) -> None:
    """In a new file, on both levels."""
    client = CLIENTS[name]
    for scope in client.files:
        assert TOKEN not in change.add_entry(client, server, scope, tmp_path).diff()
        path = write(client, server, scope, tmp_path)
        assert TOKEN not in change.remove_entry(client, scope, tmp_path).diff()
        assert path.is_relative_to(tmp_path)
        text = path.read_text()
        assert NAME in text
        has_token = isinstance(server, Http) and (server.variable is None or not client.reference)
        assert (TOKEN in text) == has_token
        assert not has_token or path.stat().st_mode & 0o077 == 0
        assert change.add_entry(client, server, scope, tmp_path).is_empty
        undo(client, scope, tmp_path)
        assert not [each for each in tmp_path.rglob("*") if each.is_file()]
        assert change.remove_entry(client, scope, tmp_path).is_empty


def test_a_directory_of_neovim_is_no_installed_client(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(home))
    copilot = CLIENTS["copilot-cli"]
    discovery = home / ".copilot" / "ide"
    discovery.mkdir(parents=True)
    assert not copilot.is_installed
    (discovery.parent / "config.json").write_text("{}")
    assert copilot.is_installed


@pytest.mark.parametrize("variable", VARIABLES)
def test_a_variable_moves_the_file(variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, file = VARIABLES[variable]
    client = CLIENTS[name]
    usual = change.add_entry(client, SERVER, "user", tmp_path).path
    assert usual.is_relative_to(tmp_path / "home")
    monkeypatch.setenv(variable, str(tmp_path / "moved"))
    assert write(client) == tmp_path / "moved" / file
    monkeypatch.setenv(variable, "moved")
    assert change.add_entry(client, SERVER, "user", tmp_path).path == usual


def test_comments_and_formatting_are_kept_and_disconnecting_restores_every_byte(home: Path) -> None:
    path = existing("cursor", '{\n  // mine\n  "mcpServers": {"a": {}},   "other": [1,2]\n}')
    path.chmod(0o640)
    before = path.read_bytes()
    write(CURSOR)
    assert "// mine" in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o640
    undo(CURSOR)
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == ["mcp.json"]


@pytest.mark.parametrize(
    ("name", "before"),
    [
        *((name, '{\n  "theme": "dark"\n}\n') for name in ("claude-code", "opencode")),
        *(("codex", 'model = "x"\n'), ("goose", "model: x\n")),
    ],
)
def test_a_table_that_connecting_has_added_is_removed(name: str, before: str, home: Path) -> None:
    client, path = CLIENTS[name], existing(name, before)
    write(client)
    undo(client)
    assert path.read_text().strip() == before.strip()


def test_a_comment_in_the_emptied_table_is_kept(home: Path) -> None:
    path = existing("cursor", '{\n  "mcpServers": {\n    // mine\n  },\n  "other": 1\n}\n')
    write(CURSOR)
    undo(CURSOR)
    assert "// mine" in path.read_text()


@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("name", ["cursor", "codex", "goose"])
def test_an_empty_file_is_removed_with_its_entry(name: str, linked: bool, home: Path) -> None:
    """Through a link it can be connected again."""
    client = CLIENTS[name]
    path = place(client.files["user"])
    path.parent.mkdir(parents=True)
    if linked:
        path.symlink_to(home / "dotfile")
    existing(name, "")
    write(client)
    assert NAME in path.read_text()
    undo(client)
    assert not path.exists()
    write(client)
    assert NAME in path.read_text()
    assert path.is_symlink() == linked


def test_a_repeated_entry_must_be_removed_by_the_user(home: Path) -> None:
    existing("cursor", f'{{"mcpServers": {{"{NAME}": {{"a": 1}}, "{NAME}": {{"b": 1}}}}}}')
    write(CURSOR)
    with pytest.raises(ChangeError, match="by hand"):
        undo(CURSOR)


def test_only_the_entry_is_removed_if_the_user_has_changed_the_file(home: Path) -> None:
    path = existing("cursor", '{"mcpServers": {"a": {}}}')
    write(CURSOR)
    path.write_text(path.read_text().replace('"a": {}', '"a": {"mine": 1}'))
    undo(CURSOR)
    assert path.read_text() == '{"mcpServers": {"a": {"mine": 1}}}'


@pytest.mark.parametrize(
    ("name", "before"),
    [("cursor", '{\n  "other": 1\n}\n'), ("codex", 'model = "x"\n'), ("goose", "model: x\n")],
)
def test_a_comment_added_by_the_user_is_kept(name: str, before: str, home: Path) -> None:
    client, path, added = (
        CLIENTS[name],
        existing(name, before),
        "// later\n" if name == "cursor" else "# later\n",
    )
    write(client)
    path.write_text(added + path.read_text())
    undo(client)
    assert path.read_text().startswith(added)
    assert NAME not in path.read_text()


CODEX = f"""model = "x"

[mcp_servers.{NAME}]
command = "old"
args = []
default_tools_approval_mode = "approve"
startup_timeout_sec = 20
env = {{ NVIM_APPNAME = "mine" }}

[mcp_servers.{NAME}.tools.nvim_file_edit]
approval_mode = "prompt"

[mcp_servers.other]
command = "x"
"""
GOOSE = f"extensions:\n  {NAME}:\n    cmd: old\n    envs: {{A: b}}\n    bundled: false\n  other: {{}}\n"
JSON = '{"%s": {"%s": {"command": "old", "args": [], "disabled": true, "env": {"A": "b"}}}}'


@pytest.mark.parametrize(
    ("name", "before", "fields"),
    [
        ("codex", CODEX, "default_tools_approval_mode startup_timeout_sec env tools"),
        ("cursor", JSON % ("mcpServers", NAME), "disabled env"),
        ("zed", JSON % ("context_servers", NAME), "disabled env"),
        ("goose", GOOSE, "envs bundled"),
    ],
)
def test_fields_that_the_user_has_added_are_kept(name: str, before: str, fields: str, home: Path) -> None:
    client, path = CLIENTS[name], existing(name, before)

    def entry() -> Any:
        return value_at(change.format_of(client).read(path.read_text()), (*client.path, NAME))

    kept = {field: entry()[field] for field in fields.split()}
    write(client)
    assert entry() == {**client.entry(SERVER), **kept}
    assert change.add_entry(client, SERVER, "user", home).is_empty
    assert ("other" in path.read_text()) == ("other" in before)
    write(client, HTTP)  # what is valid for a command may be invalid for a URL
    assert entry() == client.entry(HTTP)


@pytest.mark.parametrize("name", ["claude-code", "cursor"])
def test_fields_in_the_file_of_a_project_are_removed_and_shown(name: str, tmp_path: Path) -> None:
    """Its author may have set `env` in a file that the user only agrees to once."""
    client = CLIENTS[name]
    path = write(client, scope="project", root=tmp_path)
    hostile = path.read_text().replace('"args"', '"env": {"LD_PRELOAD": "./evil.so"}, "timeout": 1, "args"')
    path.write_text(hostile)
    diff = change.add_entry(client, SERVER, "project", tmp_path).diff()
    write(client, scope="project", root=tmp_path)
    assert "LD_PRELOAD" in hostile
    assert "LD_PRELOAD" in diff
    values = change.format_of(client).read(path.read_text())
    assert value_at(values, (*client.path, NAME)) == client.entry(SERVER)


@pytest.mark.parametrize(
    ("name", "before", "below"),
    [
        ("codex", '[mcp_servers.other]\nurl = "x"\n', "\n# about the tail\n[tail]\na = 1\n"),
        ("goose", "extensions:\n  other: {a: 1}\n", "# about the tail\ntail: 1\n"),
        ("goose", "", "# about the tail\ntail: 1\n"),
    ],
)
def test_a_comment_below_the_entry_is_kept(name: str, before: str, below: str, home: Path) -> None:
    client, path = CLIENTS[name], existing(name, before)
    write(client)
    path.write_text(path.read_text() + below)
    for server in (HTTP, SERVER, HTTP):
        write(client, server)
        assert path.read_text().endswith(below)
        assert change.add_entry(client, server, "user", Path()).is_empty
    undo(client)
    assert path.read_text().startswith(before)
    assert path.read_text().endswith(below)
    assert NAME not in path.read_text()


def test_a_file_that_has_changed_since_the_diff_is_not_overwritten(home: Path) -> None:
    made = change.add_entry(CURSOR, SERVER, "user", Path())
    made.path.parent.mkdir()
    made.path.write_text('{"theirs": 1}')
    with pytest.raises(ChangeError, match="meanwhile"):
        change.apply([made])
    assert made.path.read_text() == '{"theirs": 1}'


def test_all_files_are_checked_before_the_first_is_written(home: Path) -> None:
    first = change.add_entry(CURSOR, SERVER, "user", Path())
    changed, unwritable = home / "changed", home / "file" / "below"
    changed.write_text("theirs")
    (home / "file").write_text("")
    for other in (Change(changed, "mine", "new"), Change(unwritable, None, "new")):
        with pytest.raises(ChangeError, match="was not written"):
            change.apply([first, other])
        assert not first.path.exists()


def test_a_failure_after_a_file_names_what_was_written(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = change.add_entry(CURSOR, SERVER, "user", Path())
    other = home / "other"
    replace = os.replace

    def fail(source: str, target: Path) -> None:
        if target == other:
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(ChangeError, match=f"{other}.* it was not written. Written before: {first.path};"):
        change.apply([first, Change(other, None, "new")])
    assert first.path.exists()
    assert not other.exists()


def test_a_file_that_changes_late_is_not_overwritten(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = existing("cursor", "{}")
    made = change.add_entry(CURSOR, SERVER, "user", Path())
    monkeypatch.setattr(os, "fsync", lambda _: path.write_text('{"theirs": 1}'))
    with pytest.raises(ChangeError, match="meanwhile"):
        change.apply([made])
    assert path.read_text() == '{"theirs": 1}'
    assert [each.name for each in path.parent.iterdir()] == ["mcp.json"]


@pytest.mark.parametrize("link", [".cursor", ".cursor/mcp.json"])
def test_a_link_is_kept_and_its_target_changed(link: str, home: Path) -> None:
    real = home / "dotfiles" / "mcp.json"
    real.parent.mkdir()
    real.write_text("{} // mine\n")
    link, target = home / link, real if link.endswith(".json") else real.parent
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(os.path.relpath(target, link.parent))
    assert write(CURSOR) == real
    undo(CURSOR)
    assert link.is_symlink()
    assert real.read_text().endswith("} // mine\n")
    assert NAME not in real.read_text()
    real.unlink()  # a link to a missing file
    assert write(CURSOR) == real
    assert link.is_symlink()
    undo(CURSOR)
    assert not real.exists()
    assert link.is_symlink()


ENDLESS = ("a: " + "[" * 1000, "a = " + "[" * 1000, "[" * 1000, "1" * 10_000, "a: " + "1" * 10_000)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *(("codex", 'model = "x'), ("codex", "[mcp_servers.a"), ("goose", 'model: "x')),
        *(("goose", "extensions:\n  a: {name: a, "), ("opencode", '{"mcp": {"a": {"type": "loc')),
        *((name, text) for name in ("cursor", "codex", "goose") for text in ENDLESS),
    ],
)
def test_an_unreadable_file_is_reported_and_not_changed(name: str, text: str) -> None:
    """Truncated, nested too deep, with huge numbers."""
    path = existing(name, text)
    for verb in (write, undo):
        with pytest.raises(ChangeError, match="cannot be read"):
            verb(CLIENTS[name])
    assert path.read_text() == text
    assert [each.name for each in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("link", [".cursor", ".cursor/mcp.json"])
def test_a_link_of_a_project_must_not_lead_out_of_it(tmp_path: Path, link: str) -> None:
    """The project does not choose a file of the user to change."""
    root, outside, inside = tmp_path / "project", tmp_path / "outside", tmp_path / "project" / "inside"
    for directory in (root, outside, inside):
        directory.mkdir()
        (directory / "mcp.json").write_text("{}")
    path = root / link
    path.parent.mkdir(exist_ok=True)
    name = path.name if path.suffix else ""
    path.symlink_to(outside / name)
    for verb in (write, undo):
        with pytest.raises(ChangeError, match="leads out of the project by a link"):
            verb(CURSOR, scope="project", root=root)
    assert (outside / "mcp.json").read_text() == "{}"
    path.unlink()
    path.symlink_to(inside / name)
    assert write(CURSOR, scope="project", root=root) == inside / "mcp.json"


@pytest.mark.parametrize(
    ("text", "mode", "reason"),
    [
        (b'{"a": ', 0o644, "line 1"),
        (b'{"mcpServers": []}', 0o644, "not an object"),
        (b"[]", 0o644, "not an object"),
        (b'"\xff"', 0o644, "UTF-8"),
        (b"{}", 0o444, "read-only"),
    ],
)
def test_an_invalid_or_read_only_file_is_not_changed(home: Path, text: bytes, mode: int, reason: str) -> None:
    path = existing("cursor", text)
    path.chmod(mode)
    with pytest.raises(ChangeError, match=reason):
        write(CURSOR)
    assert path.read_bytes() == text


def test_a_directory_or_pipe_is_refused(home: Path) -> None:
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    for make, remove in ((os.mkdir, os.rmdir), (os.mkfifo, os.unlink)):
        make(path)
        with pytest.raises(ChangeError, match="not a regular file"):
            write(CURSOR)
        remove(path)


def test_a_client_without_project_files_is_refused() -> None:
    with pytest.raises(ChangeError, match="--project"):
        change.add_entry(CLIENTS["goose"], SERVER, "project", Path())


def test_files_that_git_would_track_are_recognized(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the repository's configuration runs or a variable says."""
    file = tmp_path / ".mcp.json"
    assert not change.is_for_git(file)
    git(tmp_path, "init", "-q")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "none"))
    assert change.is_for_git(file)
    assert change.is_for_git(tmp_path / "path" / "to" / "be" / "mcp.json")
    (tmp_path / ".gitignore").write_text(".mcp.json\n")
    file.write_text("{}")
    assert not change.is_for_git(file)
    monkeypatch.delenv("GIT_DIR")
    git(tmp_path, "add", "-f", ".mcp.json")
    git(tmp_path, "config", "core.fsmonitor", f"touch {tmp_path}/ran; false")
    assert change.is_for_git(file)
    assert not (tmp_path / "ran").exists()


def test_git_fetches_no_missing_object(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / ".gitignore").write_text(".mcp.json\n")
    git(tmp_path, "add", ".gitignore")
    blob = git(tmp_path, "rev-parse", ":.gitignore")
    git(tmp_path, "update-index", "--skip-worktree", ".gitignore")
    (tmp_path / ".gitignore").unlink()
    (tmp_path / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    remote = {"url": str(tmp_path), "promisor": "true", "uploadpack": f"touch {tmp_path}/ran; false"}
    git(tmp_path, "config", "core.repositoryformatversion", "1")
    git(tmp_path, "config", "extensions.partialClone", "origin")
    for key, value in remote.items():
        git(tmp_path, "config", f"remote.origin.{key}", value)
    assert change.is_for_git(tmp_path / ".mcp.json")
    assert not (tmp_path / "ran").exists()


def test_a_git_of_the_project_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git(tmp_path, "init", "-q")
    trap = tmp_path / "bin" / "git"
    trap.parent.mkdir()
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    trap.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:bin:{os.environ['PATH']}")
    assert change.is_for_git(tmp_path / ".mcp.json")
    assert not (tmp_path / "ran").exists()


def test_without_git_a_repository_may_track_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "repository" / ".git").mkdir(parents=True)  # broken: git gives an error
    assert change.is_for_git(tmp_path / "repository" / ".mcp.json")
    monkeypatch.setenv("PATH", "")
    assert change.is_for_git(tmp_path / "repository" / "new" / ".mcp.json")
    assert not change.is_for_git(tmp_path / ".mcp.json")
