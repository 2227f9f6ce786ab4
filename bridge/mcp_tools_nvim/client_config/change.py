"""Changes of a client's configuration file.

The text is edited in place and compared by value: only the entry may differ. A file that has changed
meanwhile is not written; links are preserved.
"""

from __future__ import annotations

import contextlib
import copy
import difflib
import importlib
import os
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import BridgeError
from .client import NAME, AiClient, ConfigLevel, Entry, Http, Server, Stdio, place
from .formats import FormatError, jsonc, table_for, value_at

MAX_BYTES = 8 * 1024 * 1024
FAULTS = (FormatError, RecursionError, ValueError)
"""Exceptions for unreadable text; libraries raise others for extreme nesting or numbers."""
GIT_SECONDS = 5.0
IGNORED = 0
"""Exit code of `git check-ignore`; a tracked file is not ignored."""
GIT_SETTINGS = ("core.fsmonitor=false", "core.hooksPath=/dev/null", "safe.bareRepository=explicit")
GIT_ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "none",  # allows no transport, since none has this name
    "GIT_NO_LAZY_FETCH": "1",  # since git 2.39.4; the line above covers older ones
    "GIT_TERMINAL_PROMPT": "0",
}
_COMMENT = re.compile(r"//|/\*|#")
_TOKEN = re.compile(r"Bearer [^\s\"'${][^\s\"']*")
"""Matches a value, but not a reference to a variable."""


class ChangeError(BridgeError):
    """A change cannot be made, and nothing was changed. The message says why and what to do."""


@dataclass(frozen=True)
class Change:
    """A change of one file.

    Attributes:
        path: path of the file, with links resolved.
        before: the current text; None = no file.
        after: the new text; None = the file is removed.
        secret: the new text contains a token.
    """

    path: Path
    before: str | None
    after: str | None
    secret: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing changes."""
        return self.before == self.after

    def diff(self) -> str:
        """Returns a unified diff without tokens."""
        old, new = (_TOKEN.sub("Bearer …", text or "").splitlines() for text in (self.before, self.after))
        return "\n".join(difflib.unified_diff(old, new, str(self.path), str(self.path), lineterm=""))


def add_entry(client: AiClient, server: Server, scope: ConfigLevel, root: Path) -> Change:
    """Returns the change that adds or updates the entry. Fields that the user has added to it stay.

    In the file of a project, others may have added them: the entry is replaced.

    Raises:
        ChangeError: it cannot be made.
    """
    path = _path(client, scope, root)
    before, form = read_text(path), format_of(client)
    keys = (*client.path, NAME)
    try:
        values = form.read(before or "")
        entry = (
            client.entry(server) if scope == "project" else _updated(client, server, value_at(values, keys))
        )
        after = form.put(before or "", keys, entry)
        if form.read(after) != _with(values, keys, entry):
            raise risk(path)
    except FAULTS as error:
        raise ChangeError(f"{path} cannot be read: {error}. Fix it first; nothing was changed") from error
    secret = isinstance(server, Http) and server.token in after and (server.token not in (before or ""))
    return Change(path, before, after, secret)


def _updated(client: AiClient, server: Server, old: Any) -> Entry:
    """Returns the entry of a server, with the fields that the user has added to the old one."""
    entry, stdio = client.entry(server), client.entry(Stdio(""))
    http = {**client.entry(Http("", "")), **client.entry(Http("", "", NAME))}
    own, other = (stdio, http) if isinstance(server, Stdio) else (http, stdio)
    if not isinstance(old, dict) or old.keys() & (other.keys() - own.keys()):
        return entry  # fields for one transport may be invalid for the other
    filled = {key: old[key] for key, value in entry.items() if value == {} and isinstance(old.get(key), dict)}
    return {**entry, **filled, **{key: value for key, value in old.items() if key not in own}}


def remove_entry(client: AiClient, scope: ConfigLevel, root: Path) -> Change:
    """Returns the change that removes the entry, and the table or the file if it holds nothing else.

    Raises:
        ChangeError: it cannot be made.
    """
    path = _path(client, scope, root)
    before, form = read_text(path), format_of(client)
    if before is None:
        return Change(path, None, None)
    keys = (*client.path, NAME)
    try:
        after = form.remove(before, keys)
        if before != after and value_at(form.read(after), client.path) == {}:
            after = _without_table(form, after, client.path)
        values = form.read(after or "")
        if pruned(values) != pruned(_without(form.read(before), keys)):
            raise risk(path)
        if before != after and not pruned(values) and not _COMMENT.search(after):
            after = None
    except FAULTS as error:
        raise ChangeError(f"{path} cannot be read: {error}. Fix it first; nothing was changed") from error
    return Change(path, before, after)


def _without_table(form: Any, text: str, path: tuple[str, ...]) -> str:
    """Returns a text without an empty table, unless comments would be lost with it."""
    shorter: str = form.remove(text, path)
    return shorter if len(_COMMENT.findall(shorter)) == len(_COMMENT.findall(text)) else text


def _without_empty(value: Any) -> Any:
    """Returns a value without empty objects and lists: an edit may remove those that it has filled."""
    if not isinstance(value, dict):
        return value
    members = {key: _without_empty(member) for key, member in value.items()}
    return {key: member for key, member in members.items() if member not in ({}, [])}


def edited(
    changes: list[Change], path: Path, edit: Callable[[str], str], remove: Callable[[str], str]
) -> list[Change]:
    """Returns changes with an edit of a JSON file, whose earlier change may be among them.

    Args:
        changes: the earlier changes.
        path: the file.
        edit: returns the new text.
        remove: returns a text without our entries; nothing else may differ.

    Raises:
        ChangeError: it cannot be made.
    """
    at = next((index for index, each in enumerate(changes) if each.path == path), None)
    first = Change(path, text := read_text(path), text) if at is None else changes[at]
    before = first.after
    try:
        after: str | None = edit(before or "")
        left, kept = (_without_empty(jsonc.read(remove(each or ""))) for each in (after, before))
        if left != kept:
            raise risk(path)
        if after == (before or ""):
            after = before
        elif not pruned(jsonc.read(after or "")) and "/" not in (after or ""):  # no values, no comments
            after = None
    except FAULTS as error:
        raise ChangeError(f"{path} cannot be read: {error}. Fix it first; nothing was changed") from error
    made = replace(first, after=after)
    return [*changes, made] if at is None else [*changes[:at], made, *changes[at + 1 :]]


def apply(changes: Sequence[Change]) -> None:
    """Checks all changes, then writes them.

    Raises:
        ChangeError: a file has changed meanwhile, or cannot be written. The message names files that were
            written before it.
    """
    for each in changes:
        _check(each)
    for index, each in enumerate(changes):
        try:
            _apply(each)
        except ChangeError as error:
            if index == 0:
                raise
            written = ", ".join(str(done.path) for done in changes[:index])
            raise ChangeError(f"{error}. Written before: {written}; run the command again") from error


def _check(change: Change) -> None:
    path = change.path
    if read_text(path) != change.before:
        raise ChangeError(f"{path} was changed meanwhile and was not written. Try again")
    if change.before is not None and not path.stat().st_mode & stat.S_IWUSR:
        raise ChangeError(f"{path} is read-only and was not written. Make it writable, or edit it by hand")
    directory = next((each for each in path.parents if each.exists()), path.parent)
    if not directory.is_dir() or not os.access(directory, os.W_OK):
        raise ChangeError(f"{path} was not written: files cannot be created in {directory}")


def _apply(change: Change) -> None:
    path = change.path
    try:
        if change.after is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            mode = path.stat().st_mode & 0o777 if change.before is not None else 0o600
            if change.secret:
                mode &= 0o600
            _write(path, change.after, mode, lambda: _check(change))
    except OSError as error:
        raise ChangeError(f"{path}: {error.strerror or error}; it was not written") from error


def is_for_git(path: Path) -> bool:
    """Returns whether git tracks the file or may add it: it is in a repository that does not ignore it.

    The repository may be hostile: none of its programs runs, whatever its configuration says, and nothing is
    fetched.
    """
    top = next((each for each in path.parents if (each / ".git").exists()), None)
    if top is None:
        return False
    search = _search_path(top)
    git = shutil.which("git", path=search)
    if git is None:
        return True
    directory = next(each for each in path.parents if each.is_dir())
    settings = [word for setting in GIT_SETTINGS for word in ("-c", setting)]
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            [git, "--no-optional-locks", *settings, "-C", directory, "check-ignore", "-q", "--", path],
            env={**own, **GIT_ENVIRONMENT, "PATH": search},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=GIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return True
    return done.returncode != IGNORED


def _search_path(top: Path) -> str:
    """Returns PATH without relative directories and without those of the repository."""
    inside = top.resolve()
    kept = []
    for each in os.environ.get("PATH", os.defpath).split(os.pathsep):
        with contextlib.suppress(OSError, RuntimeError, ValueError):
            if os.path.isabs(each) and not Path(each).resolve().is_relative_to(inside):
                kept.append(each)
    return os.pathsep.join(kept)


def format_of(client: AiClient) -> Any:
    """Returns the module of `formats/` for a client.

    Raises:
        ChangeError: its library is not installed.
    """
    try:
        return importlib.import_module(f"{__package__}.formats.{client.format}")
    except ImportError as error:
        package = "ruamel.yaml" if error.name == "ruamel" else error.name
        text = f"pip install {package}, which {client.title} needs; or use :McpTools connect"
        raise ChangeError(text) from error


def _path(client: AiClient, scope: ConfigLevel, root: Path) -> Path:
    name = client.files.get(scope)
    if name is None:
        raise ChangeError(f"{client.title} has no {scope} configuration; omit --project")
    return resolve(name, root)


def resolve(name: str, root: Path) -> Path:
    """Returns the path of a file with links resolved. Relative names are relative to `root`.

    Raises:
        ChangeError: the links are broken, or lead out of the project: others may have made them.
    """
    path = root / place(name)
    try:
        found, directory = path.resolve(), root.resolve()
    except (OSError, RuntimeError) as error:
        raise ChangeError(f"{path}: {error}") from error
    if not place(name).is_absolute() and not found.is_relative_to(directory):
        raise ChangeError(
            f"{path} leads out of the project by a link, to {found}; nothing was changed."
            " Add the entry there by hand, or omit --project"
        )
    return found


def read_text(path: Path) -> str | None:
    """Returns the text of a file; None if it does not exist.

    Raises:
        ChangeError: it is not a text file, or cannot be read.
    """
    try:
        if not path.exists():
            return None
        if not path.is_file():
            raise ChangeError(f"{path} is not a regular file; nothing was changed")
        if path.stat().st_size > MAX_BYTES:
            raise ChangeError(f"{path} is larger than {MAX_BYTES} bytes, too large for a configuration file")
        return path.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise ChangeError(f"{path} is not UTF-8; nothing was changed") from error
    except OSError as error:
        raise ChangeError(f"{path}: {error.strerror or error}") from error


def _write(path: Path, text: str, mode: int, check: Callable[[], None]) -> None:
    """Replaces a file, unless `check` raises once the new one is on the disk."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        check()
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def risk(path: Path) -> ChangeError:
    """The error for a change that would touch more than the entry."""
    return ChangeError(f"{path} cannot be changed without affecting other entries; change it by hand")


def _with(values: Any, keys: tuple[str, ...], entry: dict[str, Any]) -> Any:
    changed = copy.deepcopy(values)
    table_for(changed, keys)[keys[-1]] = entry
    return changed


def _without(values: Any, keys: tuple[str, ...]) -> Any:
    changed = copy.deepcopy(values)
    table = value_at(changed, keys[:-1])
    if isinstance(table, dict):
        table.pop(keys[-1], None)
    return changed


def pruned(values: Any) -> Any:
    """Returns values without empty tables."""
    if not isinstance(values, dict):
        return values
    kept = {key: pruned(value) for key, value in values.items()}
    return {key: value for key, value in kept.items() if value != {}}
