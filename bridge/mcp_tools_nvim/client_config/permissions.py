"""Rules in the permission settings of a client: single tools of ours run there without a question.

The rules match the name of the server, whatever its command is.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Sequence
from pathlib import Path

from . import change
from .change import Change, ChangeError
from .client import NAME, AiClient, ConfigLevel, Permissions
from .formats import FormatError, jsonc, value_at

_MARK = "# By mcp-tools: `connect --permissions` writes this file, `disconnect` removes it."
_POLICY = f"""\
{_MARK}
[[rule]]
mcpName = "{NAME}"
toolName = %s
decision = "allow"
priority = 1
"""
"""A policy file of Gemini CLI. Rules of the user with a higher priority win."""


def rules_of(client: AiClient, scope: ConfigLevel) -> Permissions:
    """Returns how the client allows tools.

    Raises:
        ChangeError: it cannot, or a project would.
    """
    if isinstance(client.permissions, str):
        raise ChangeError(f"{client.title}: {client.permissions}; omit --permissions")
    if scope == "project":
        raise ChangeError("--permissions changes only your own settings; omit --project")
    return client.permissions


def note(client: AiClient, rules: Permissions, root: Path) -> str:
    """Returns what the user must know about the rules: other servers of the name inherit them."""
    text = f"The rules apply to any server named {NAME}, also to one that a project defines"
    above = itertools.takewhile(lambda directory: directory != Path.home(), (root, *root.parents))
    files = (directory / name for directory in above for name in rules.project_files)
    if (found := next((path for path in files if _may_define(client, path)), None)) is not None:
        text = f"WARNING: {found} defines a server named {NAME}, or cannot be read, and the rules apply to it"
    return f"{text}. Use such a server only if you know its command."


def _may_define(client: AiClient, path: Path) -> bool:
    """Returns whether a file defines a server with our name, or cannot be read."""
    try:
        values = jsonc.read(change.read_text(path) or "")
    except (ChangeError, *change.FAULTS):
        return True
    return value_at(values, (*client.path, NAME)) is not None


def add_permissions(
    changes: list[Change], rules: Permissions, tools: Sequence[str], root: Path
) -> list[Change]:
    """Returns the changes of `connect` with permissions.

    Args:
        changes: the changes without them; one may be of the same file.
        rules: how the client allows tools.
        tools: names of the tools.
        root: the project root.

    Raises:
        ChangeError: the file cannot be changed.
    """
    path = change.resolve(rules.file, root)
    if rules.path:
        return change.edited(
            changes, path, lambda text: _put(text, rules, tools), lambda text: _removed(text, rules)
        )
    before = change.read_text(path)
    if before is not None and _MARK not in before:
        raise ChangeError(f"{path} is not a file of this server; nothing was changed. Move it away first")
    return [*changes, Change(path, before, _POLICY % json.dumps(tools, indent=2))]


def remove_permissions(changes: list[Change], client: AiClient, root: Path) -> list[Change]:
    """Returns the changes of `disconnect`; raises like `add_permissions`."""
    rules = client.permissions
    if isinstance(rules, str):
        return changes
    path = change.resolve(rules.file, root)
    before = change.read_text(path) or ""
    if rules.path and NAME in before:  # else the file may be one that cannot be read
        return change.edited(
            changes, path, lambda text: _removed(text, rules), lambda text: _removed(text, rules)
        )
    return changes if rules.path or _MARK not in before else [*changes, Change(path, before, None)]


def _put(text: str, rules: Permissions, tools: Sequence[str]) -> str:
    for rule in (rules.rule % name for name in tools):
        there = value_at(jsonc.read(text), rules.path)
        if isinstance(there, str):
            raise FormatError(f'{rules.path[-1]}: write {{"*": "{there}"}} instead')
        if rules.value is not None:
            text = text if rule in (there or ()) else jsonc.put(text, (*rules.path, rule), rules.value)
        elif not there:
            text = jsonc.put(text, rules.path, [rule])
        elif not isinstance(there, list):
            raise FormatError(f"{'.'.join(rules.path)}: not a list")
        elif rule not in there:
            text = jsonc.put(text, (*rules.path, str(len(there))), rule)
    return text


def _removed(text: str, rules: Permissions) -> str:
    """Returns a text without rules for single tools of ours."""
    ours = re.compile(re.escape(rules.rule).replace("%s", r"[\w-]+"))

    def is_ours(key: object, value: object) -> bool:
        rule, expected = (key, rules.value) if rules.value is not None else (value, value)
        return value == expected and isinstance(rule, str) and ours.fullmatch(rule) is not None

    return jsonc.remove_where(text, rules.path, is_ours)
