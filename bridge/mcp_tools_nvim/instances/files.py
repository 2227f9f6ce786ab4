"""Instance files: the running Neovims of this user, with the addresses of each and of its bridge."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import math
import os
import pwd
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

MAX_BYTES = 64 * 1024
"""Maximum size of an instance file, which usually has a few hundred bytes."""


@dataclass(frozen=True, slots=True)
class Instance:
    """A Neovim with a bridge, from its instance file."""

    pid: int
    port: int
    token: str = field(repr=False)
    root: str = ""
    cwd: str = ""
    socket: str = ""
    url: str = ""
    boot: str = ""
    focused_at: float = 0.0


def own_directories(
    environ: Mapping[str, str], sessions: str = "/run/user", home: str | None = None
) -> list[str]:
    """Returns the directories of instance files, like lua/mcp-tools/instances/file.lua.

    A Neovim uses one of them, depending on its environment. The settings of a project may set variables, so
    relative directories, and those at or below a repository or the current directory, are omitted.

    Args:
        environ: usually `os.environ`.
        sessions: parent of XDG_RUNTIME_DIR, for processes that `ssh` or `su` started without the variable.
        home: home directory of this user, which may be a repository; default: as the system knows it.
    """
    home = os.path.realpath(home_of_account() if home is None else home)
    runtime = environ.get("XDG_RUNTIME_DIR")
    if runtime is None:
        runtime = f"{sessions}/{os.getuid()}"
    directories = [str(Path(runtime) / "mcp-tools")] if runtime and _is_own_directory(Path(runtime)) else []
    name = environ.get("NVIM_APPNAME") or "nvim"
    if not os.path.isabs(name):
        state = Path(environ.get("XDG_STATE_HOME") or "~/.local/state")
        directories.append(os.path.expanduser(state / name / "mcp-tools" / "instances"))
    named = [path for path in directories if os.path.isabs(path) and ".." not in Path(path).parts]
    return [path for path in named if not _in_project(path, home)]


def read_all(directory: str | None) -> list[Instance]:
    """Returns the instances in a directory; ignores what other users can use, and bridges elsewhere."""
    if not directory or not _is_own_directory(Path(directory), others=0o077):
        return []
    found = [_read(path) for path in sorted(Path(directory).glob("*.json"))]
    return [instance for instance in found if instance is not None]


def table_of(data: bytes) -> dict[str, Any]:
    """Returns the JSON object in `data`; {} if it is incomplete, invalid or nested too deep.

    Invalid UTF-8 is preserved: names of directories may contain it.
    """
    try:
        values = json.loads(os.fsdecode(data))
    except (ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}


def is_loopback(url: str) -> bool:
    """Whether a URL is an HTTP server of this machine."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        return (
            parts.scheme == "http"
            and parts.username is None
            and (host == "localhost" or ipaddress.ip_address(host).is_loopback)
        )
    except ValueError:
        return False


def home_of_account() -> str:
    """Returns the home directory in the user database, which no variable changes."""
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:  # a user without an entry: the variables are not reliable
        return "/"


def _in_project(path: str, home: str) -> bool:
    """Whether a path is at or below the current directory or a repository other than the home directory."""
    real = Path(os.path.realpath(path))
    parents = (real, *real.parents)
    with contextlib.suppress(FileNotFoundError):  # the current directory was removed
        here = Path.cwd()
        if here in parents and not Path(home).is_relative_to(here):
            return True
    return any(str(parent) != home and os.path.lexists(parent / ".git") for parent in parents)


def _is_own(about: os.stat_result, others: int) -> bool:
    """Whether a file is owned by this user, and other users lack these permissions."""
    return about.st_uid == os.getuid() and not about.st_mode & others


def _is_own_directory(path: Path, others: int = stat.S_IWGRP | stat.S_IWOTH) -> bool:
    try:
        return _is_own(path.stat(follow_symlinks=False), others)
    except (OSError, ValueError):
        return False


def _read(path: Path) -> Instance | None:
    values = table_of(_bytes_of(path))
    pid, port, token = values.get("pid"), values.get("port"), values.get("token")
    if not isinstance(pid, int) or not isinstance(port, int) or not isinstance(token, str) or not token:
        return None
    texts = {k: v for k in ("root", "cwd", "socket", "url", "boot") if isinstance(v := values.get(k), str)}
    if texts.get("url") and not is_loopback(texts["url"]):
        return None
    return Instance(pid, port, token, focused_at=_seconds(values.get("focused_at")), **texts)


def _bytes_of(path: Path) -> bytes:
    """Returns the contents of a private regular file; empty for anything else, such as a link."""
    # O_NONBLOCK since opening a named pipe would block; the open file is checked, not its name.
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW
    try:
        with open(os.open(path, flags), "rb") as file:
            about = os.fstat(file.fileno())
            if (
                not stat.S_ISREG(about.st_mode)
                or not _is_own(about, others=0o077)
                or about.st_size > MAX_BYTES
            ):
                return b""
            return file.read(MAX_BYTES)
    except OSError:
        return b""


def _seconds(value: Any) -> float:
    try:
        seconds = float(value) if isinstance(value, int | float) else 0.0
    except OverflowError:
        return 0.0
    return seconds if math.isfinite(seconds) else 0.0
