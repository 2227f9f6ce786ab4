"""Our skill in the skills directory of a client: a directory with a SKILL.md.

Several clients may share a skills directory; the skill is removed with the last of them.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from . import change
from .change import Change, ChangeError
from .client import NAME, AiClient, ConfigLevel
from .known import CLIENTS

FILE = "SKILL.md"
MARK = "<!-- By mcp-tools: `connect --skill` writes this file, `disconnect` removes it. -->"
"""A line of the text that identifies it."""


def add_skill(client: AiClient, text: str, scope: ConfigLevel, root: Path) -> Change:
    """Returns the change that adds or updates the skill.

    Raises:
        ChangeError: the client has no skills, or another skill has the name.
    """
    path = _path(client, scope, root)
    if path is None:
        raise ChangeError(f"{client.title} has no {scope} skills; omit --skill")
    return skill_change(path, text)


def skill_change(path: Path, text: str) -> Change:
    """Returns the change that adds or updates a skill file.

    Raises:
        ChangeError: the file exists and is not ours.
    """
    before = change.read_text(path)
    if before is not None and MARK not in before:
        raise ChangeError(f"{path} is another skill; nothing was changed. Move it away first")
    return Change(path, before, text)


def remove_skill(client: AiClient, scope: ConfigLevel, root: Path) -> Change | None:
    """Returns the change that removes the skill; None if there is none, or another connected client uses it.

    Raises:
        ChangeError: it cannot be read.
    """
    path = _path(client, scope, root)
    before = None if path is None else change.read_text(path)
    if path is None or before is None or MARK not in before or readers(client, scope, root):
        return None
    return Change(path, before, None)


def readers(client: AiClient, scope: ConfigLevel, root: Path) -> list[str]:
    """Returns the titles of other connected clients with the same directory."""
    path = _path(client, scope, root)
    return [
        other.title
        for other in CLIENTS.values()
        if other.title != client.title
        and _path(other, scope, root) == path
        and _connected(other, scope, root)
    ]


def remove_directory(removed: Change) -> None:
    """Removes the directory of a removed file if it is empty."""
    with contextlib.suppress(OSError):
        removed.path.parent.rmdir()


def _path(client: AiClient, scope: ConfigLevel, root: Path) -> Path | None:
    directory = client.skills.get(scope)
    return None if directory is None else change.resolve(f"{directory}/{NAME}/{FILE}", root)


def _connected(client: AiClient, scope: ConfigLevel, root: Path) -> bool:
    if scope not in client.files:
        return False
    try:
        return not change.remove_entry(client, scope, root).is_empty
    except ChangeError:
        return True  # unknown: keep the skill
