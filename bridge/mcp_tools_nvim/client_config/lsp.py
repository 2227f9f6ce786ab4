"""`mcp-tools lsp` among the language servers of a client's own LSP client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from . import change
from .change import Change, ChangeError
from .client import NAME, AiClient, ConfigLevel, Entry, Lsp
from .formats import jsonc, value_at

_OFF = {"disabled": True}


def add_lsp(
    changes: list[Change],
    client: AiClient,
    command: Sequence[str],
    languages: Mapping[str, str],
    scope: ConfigLevel,
    root: Path,
) -> list[Change]:
    """Returns the changes of `connect` with a language server.

    Args:
        changes: the changes without it; one may be of the same file.
        client: the client.
        command: the command line of the server.
        languages: extension of each file that has a server in the editor, with its dot → language.
        scope: whose files are used.
        root: the project root.

    Raises:
        ChangeError: the client has no LSP client, or the file cannot be changed.
    """
    lsp = client.lsp
    if lsp is None:
        raise ChangeError(f"{client.title} has no LSP client that can be configured; omit --lsp")
    if scope not in lsp.files:
        level = "--project is missing" if scope == "user" else "omit --project"
        raise ChangeError(f"{client.title} has no {scope} configuration of language servers; {level}")
    entry = _entry(lsp, command, languages)

    def edit(text: str) -> str:
        for name in lsp.off:
            if value_at(jsonc.read(text), (*lsp.path, name)) is None:
                text = jsonc.put(text, (*lsp.path, name), _OFF)
        return jsonc.put(text, (*lsp.path, NAME), entry)

    return change.edited(
        changes, path_of(lsp, scope, root), edit, lambda text: _removed(text, lsp, is_ours=True)
    )


def remove_lsp(changes: list[Change], client: AiClient, scope: ConfigLevel, root: Path) -> list[Change]:
    """Returns the changes of `disconnect`; raises like `add_lsp`."""
    lsp = client.lsp
    if lsp is None or scope not in lsp.files:
        return changes
    path = path_of(lsp, scope, root)
    if NAME not in (change.read_text(path) or ""):
        return changes  # the file may be one that cannot be read

    def edit(text: str) -> str:
        return _removed(text, lsp)

    return change.edited(changes, path, edit, edit)


def path_of(lsp: Lsp, scope: ConfigLevel, root: Path) -> Path:
    """Returns the file; raises like `change.resolve`."""
    return change.resolve(lsp.files[scope], root)


def _entry(lsp: Lsp, command: Sequence[str], languages: Mapping[str, str]) -> Entry:
    if lsp.languages is None:
        return {"command": list(command), "extensions": sorted(languages)}
    return {"command": command[0], "args": list(command[1:]), lsp.languages: dict(sorted(languages.items()))}


def _removed(text: str, lsp: Lsp, *, is_ours: bool = False) -> str:
    """Returns a text without our entry, and without the `disabled` entries that were added with it.

    Args:
        text: the text.
        lsp: what the client has.
        is_ours: also remove `disabled` entries if ours is not there.
    """
    table = value_at(jsonc.read(text), lsp.path) if text.strip() else None
    if not isinstance(table, dict) or (NAME not in table and not is_ours):
        return text
    for name in (NAME, *lsp.off):
        if (name == NAME and name in table) or table.get(name) == _OFF:
            text = jsonc.remove(text, (*lsp.path, name))
    if lsp.path and value_at(jsonc.read(text), lsp.path) == {}:
        text = jsonc.remove(text, lsp.path)  # OpenCode would start its own servers
    return text
