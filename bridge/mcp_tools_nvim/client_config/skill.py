"""Our skill among those of a client: a folder with a SKILL.md, which is ours as a whole.

Several clients read one folder of skills: it stays there until the last of them is disconnected.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from . import change
from .change import Change, ChangeError
from .client import NAME, AiClient, ConfigLevel
from .known import CLIENTS

FILE = "SKILL.md"
MARK = "<!-- By mcp-tools: `connect --skill` writes this anew, `disconnect` takes it away. -->"
"""A line of the text, by which it is known again."""


def add_skill(client: AiClient, text: str, scope: ConfigLevel, root: Path) -> Change:
    """Puts it there, or brings it up to date.

    Raises:
        ChangeError: the client knows no skills, or one of that name is somebody else's.
    """
    path = _path(client, scope, root)
    if path is None:
        raise ChangeError(f"{client.title} has no folder for skills of a {scope}; leave --skill out")
    return skill_change(path, text)


def skill_change(path: Path, text: str) -> Change:
    """The same for a file that is named.

    Raises:
        ChangeError: there is one that is not ours.
    """
    before = change.read_text(path)
    if before is not None and MARK not in before:
        raise ChangeError(f"{path} is a skill of somebody else; nothing was changed. Move it away first")
    return Change(path, before, text)


def remove_skill(client: AiClient, scope: ConfigLevel, root: Path) -> Change | None:
    """Takes it away; None = there is none of ours, or another client that is connected reads it as well.

    Raises:
        ChangeError: it cannot be read.
    """
    path = _path(client, scope, root)
    before = None if path is None else change.read_text(path)
    if path is None or before is None or MARK not in before or readers(client, scope, root):
        return None
    return Change(path, before, None)


def readers(client: AiClient, scope: ConfigLevel, root: Path) -> list[str]:
    """Titles of the other clients that read the same folder and are connected."""
    path = _path(client, scope, root)
    return [
        other.title
        for other in CLIENTS.values()
        if other.title != client.title
        and _path(other, scope, root) == path
        and _connected(other, scope, root)
    ]


def write_skill(made: Change) -> None:
    """Writes it; its folder goes with it, unless somebody has put something else there.

    Raises:
        ChangeError: as that of `change.apply`.
    """
    change.apply(made)
    if made.after is None:
        with contextlib.suppress(OSError):
            made.path.parent.rmdir()


def _path(client: AiClient, scope: ConfigLevel, root: Path) -> Path | None:
    folder = client.skills.get(scope)
    return None if folder is None else change.resolve(f"{folder}/{NAME}/{FILE}", root)


def _connected(client: AiClient, scope: ConfigLevel, root: Path) -> bool:
    if scope not in client.files:
        return False
    try:
        return not change.remove_entry(client, scope, root).is_empty
    except ChangeError:
        return True  # its file cannot be read: nothing is taken from it
