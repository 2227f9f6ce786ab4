"""The skill in the skill directories of clients; other files stay the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcp_tools_nvim.client_config import change, skill
from mcp_tools_nvim.client_config.change import Change, ChangeError
from mcp_tools_nvim.client_config.client import NAME, Stdio
from mcp_tools_nvim.client_config.known import CLIENTS

TEXT = f"---\nname: {NAME}\n---\n{skill.MARK}\n"


def apply(made: Change) -> None:
    change.apply([made])
    if made.after is None:
        skill.remove_directory(made)


def install(name: str, root: Path = Path(), scope: change.ConfigLevel = "user") -> Path:
    made = skill.add_skill(CLIENTS[name], TEXT, scope, root)
    apply(made)
    return made.path


def remove(name: str) -> bool:
    gone = skill.remove_skill(CLIENTS[name], "user", Path())
    if gone is not None:
        apply(gone)
    return gone is not None


@pytest.mark.parametrize("name", CLIENTS)
def test_the_skill_is_added_updated_and_removed_with_its_directory(name: str, tmp_path: Path) -> None:
    for scope in CLIENTS[name].skills:
        path = install(name, tmp_path, scope)
        assert path.is_relative_to(tmp_path)
        assert path.parts[-2:] == (NAME, "SKILL.md")
        assert skill.add_skill(CLIENTS[name], TEXT, scope, tmp_path).is_empty
        newer = skill.add_skill(CLIENTS[name], TEXT + "more", scope, tmp_path)
        assert "+more" in newer.diff()
        apply(newer)
        gone = skill.remove_skill(CLIENTS[name], scope, tmp_path)
        assert gone is not None
        apply(gone)
        assert not path.parent.exists()
        assert path.parent.parent.is_dir()  # other skills may be there
        assert skill.remove_skill(CLIENTS[name], scope, tmp_path) is None


def test_a_skill_of_the_same_name_without_our_mark_is_kept() -> None:
    path = install("claude-code")
    path.write_text("theirs")
    with pytest.raises(ChangeError, match="another skill"):
        skill.add_skill(CLIENTS["claude-code"], TEXT, "user", Path())
    assert not remove("claude-code")
    assert path.read_text() == "theirs"


def test_other_files_in_the_directory_are_kept() -> None:
    path = install("claude-code")
    path.with_name("notes.md").write_text("mine")
    assert remove("claude-code")
    assert [each.name for each in path.parent.iterdir()] == ["notes.md"]


def test_a_file_that_has_changed_since_the_diff_is_not_overwritten() -> None:
    path = install("claude-code")
    made = skill.add_skill(CLIENTS["claude-code"], TEXT + "more", "user", Path())
    path.write_text(TEXT + "theirs")
    with pytest.raises(ChangeError, match="meanwhile"):
        apply(made)
    assert path.read_text() == TEXT + "theirs"


def test_a_skills_directory_that_is_a_link_is_kept(home: Path) -> None:
    (home / "dotfiles").mkdir()
    (home / ".claude").mkdir()
    (home / ".claude" / "skills").symlink_to("../dotfiles")
    assert install("claude-code") == home / "dotfiles" / NAME / "SKILL.md"
    assert remove("claude-code")
    assert (home / ".claude" / "skills").is_symlink()
    assert not list((home / "dotfiles").iterdir())


def test_agents_that_read_the_common_directory_share_one_skill(home: Path) -> None:
    agents = ("codex", "copilot-cli", "gemini-cli", "opencode", "qwen-code")
    assert {install(name) for name in agents} == {home / ".agents" / "skills" / NAME / "SKILL.md"}


def test_a_shared_skill_is_removed_with_the_last_connected_client() -> None:
    install("codex")
    made = change.add_entry(CLIENTS["zed"], Stdio("python3"), "user", Path())
    apply(made)
    assert skill.readers(CLIENTS["codex"], "user", Path()) == ["Zed"]
    assert not remove("codex")
    made.path.unlink()
    assert remove("codex")
