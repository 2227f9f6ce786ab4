"""Our skill among those of a client: nothing of anybody else is touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcp_tools_nvim.client_config import change, skill
from mcp_tools_nvim.client_config.change import ChangeError
from mcp_tools_nvim.client_config.client import NAME, AiClient, Stdio
from mcp_tools_nvim.client_config.known import CLIENTS

TEXT = f"---\nname: {NAME}\n---\n{skill.MARK}\n"


def client(name: str) -> AiClient:
    return CLIENTS[name]


def install(name: str, root: Path = Path(), scope: change.ConfigLevel = "user") -> Path:
    made = skill.add_skill(client(name), TEXT, scope, root)
    skill.write_skill(made)
    return made.path


def remove(name: str) -> bool:
    gone = skill.remove_skill(client(name), "user", Path())
    if gone is not None:
        skill.write_skill(gone)
    return gone is not None


@pytest.mark.parametrize("name", CLIENTS)
def test_every_client(name: str, tmp_path: Path) -> None:
    """There, up to date, brought up to date, and gone, folder and all, in both scopes."""
    for scope in client(name).skills:
        path = install(name, tmp_path, scope)
        assert path.is_relative_to(tmp_path)
        assert path.parts[-2:] == (NAME, "SKILL.md")
        assert skill.add_skill(client(name), TEXT, scope, tmp_path).is_empty
        newer = skill.add_skill(client(name), TEXT + "more", scope, tmp_path)
        assert "+more" in newer.diff()
        skill.write_skill(newer)
        gone = skill.remove_skill(client(name), scope, tmp_path)
        assert gone is not None
        skill.write_skill(gone)
        assert not path.parent.exists()
        assert path.parent.parent.is_dir()  # others may count on it
        assert skill.remove_skill(client(name), scope, tmp_path) is None


def test_of_somebody_else() -> None:
    """A skill of the same name without our mark is neither changed nor taken away."""
    path = install("claude-code")
    path.write_text("theirs")
    with pytest.raises(ChangeError, match="another skill"):
        skill.add_skill(client("claude-code"), TEXT, "user", Path())
    assert not remove("claude-code")
    assert path.read_text() == "theirs"


def test_other_files_stay() -> None:
    """What somebody has put beside it, and the folder then, stay."""
    path = install("claude-code")
    path.with_name("notes.md").write_text("mine")
    assert remove("claude-code")
    assert [each.name for each in path.parent.iterdir()] == ["notes.md"]


def test_changed_meanwhile() -> None:
    """What was written since it was shown is not overwritten, and a link stays one."""
    path = install("claude-code")
    made = skill.add_skill(client("claude-code"), TEXT + "more", "user", Path())
    path.write_text(TEXT + "theirs")
    with pytest.raises(ChangeError, match="meanwhile"):
        skill.write_skill(made)
    assert path.read_text() == TEXT + "theirs"


def test_links_stay(home: Path) -> None:
    """Folders of skills are often links: what they lead to is changed."""
    (home / "dotfiles").mkdir()
    (home / ".claude").mkdir()
    (home / ".claude" / "skills").symlink_to("../dotfiles")
    assert install("claude-code") == home / "dotfiles" / NAME / "SKILL.md"
    assert remove("claude-code")
    assert (home / ".claude" / "skills").is_symlink()
    assert not list((home / "dotfiles").iterdir())


def test_a_folder_that_several_read() -> None:
    """It stays until the last of the connected clients that read it is disconnected."""
    install("codex")
    made = change.add_entry(client("zed"), Stdio("python3"), "user", Path())
    change.apply(made)
    assert skill.readers(client("codex"), "user", Path()) == ["Zed"]
    assert not remove("codex")
    made.path.unlink()
    assert remove("codex")
