"""Instance files: which editors of this user there are, and where each of them and its bridge listen."""

from __future__ import annotations

import json
import math
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MAX_BYTES = 64 * 1024
"""An editor's note has a few hundred."""


@dataclass(frozen=True, slots=True)
class Instance:
    """One editor with a bridge, from its instance file."""

    pid: int
    port: int
    token: str = field(repr=False)
    root: str = ""
    cwd: str = ""
    socket: str = ""
    url: str = ""
    boot: str = ""
    focused_at: float = 0.0


def own_folders(environ: Mapping[str, str], sessions: str = "/run/user") -> list[str]:
    """Where this user's editors note themselves, as lua/mcp-tools/instances/file.lua has it.

    An editor has one place; one that was started elsewhere (by a service, say) may have the other.

    Args:
        environ: usually `os.environ`.
        sessions: where the system has XDG_RUNTIME_DIR, for what `ssh` or `su` started without the variable.
    """
    runtime = environ.get("XDG_RUNTIME_DIR")
    if runtime is None and os.name != "nt":
        runtime = f"{sessions}/{os.getuid()}"
    folders = [str(Path(runtime) / "mcp-tools")] if runtime and _is_own_folder(Path(runtime)) else []
    name = environ.get("NVIM_APPNAME") or "nvim"
    if os.name == "nt":
        state = Path(environ.get("XDG_STATE_HOME") or environ.get("LOCALAPPDATA") or "~/AppData/Local")
        name += "-data"
    else:
        state = Path(environ.get("XDG_STATE_HOME") or "~/.local/state")
    return [*folders, os.path.expanduser(state / name / "mcp-tools" / "instances")]


def read_all(folder: str | None) -> list[Instance]:
    """All instances named in `folder`; files that others could have written are left out."""
    if not folder or not _is_own_folder(Path(folder)):
        return []
    found = [_read(path) for path in sorted(Path(folder).glob("*.json"))]
    return [instance for instance in found if instance is not None]


def table_of(data: bytes) -> dict[str, Any]:
    """The JSON object that `data` is; {} for what is half written, foreign or nested without end.

    Bytes that are no UTF-8 stay what they are: a folder's name may hold some.
    """
    try:
        values = json.loads(os.fsdecode(data))
    except (ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}


def _private(about: os.stat_result) -> bool:
    """Ours alone: owned by this user and not writable by others."""
    if os.name == "nt":
        return True
    return about.st_uid == os.getuid() and not about.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _is_own_folder(path: Path) -> bool:
    try:
        return _private(path.stat(follow_symlinks=False))
    except (OSError, ValueError):
        return False


def _read(path: Path) -> Instance | None:
    values = table_of(_bytes_of(path))
    pid, port, token = values.get("pid"), values.get("port"), values.get("token")
    if not isinstance(pid, int) or not isinstance(port, int) or not isinstance(token, str) or not token:
        return None
    texts = {k: v for k in ("root", "cwd", "socket", "url", "boot") if isinstance(v := values.get(k), str)}
    return Instance(pid, port, token, focused_at=_seconds(values.get("focused_at")), **texts)


def _bytes_of(path: Path) -> bytes:
    """What is in a file that is ours; nothing of any other, of a link, or of what is no file at all."""
    # A pipe would hold up whoever opens it, so it is not waited for; what was opened is judged, not its name.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
    try:
        with open(os.open(path, flags), "rb") as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode) or not _private(about) or about.st_size > MAX_BYTES:
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
