"""Which editor a program means: the one it names, the one it runs in, or that of its folder's project."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from ..errors import Code
from ..values import ToolError
from . import files
from .files import Instance

VARIABLES = ("NVIM", "NVIM_LISTEN_ADDRESS")
"""What a Neovim tells the programs that run in it, its terminals included; and what a person may set."""


class Place(NamedTuple):
    """Where an editor listens, and from where that is known."""

    address: str
    origin: str


def find(address: str | None = None, home: str | None = None) -> Place | ToolError:
    """Finds the editor of this process.

    Args:
        address: its `v:servername`; else `home`, $NVIM, $NVIM_LISTEN_ADDRESS, the project of this folder.
        home: the address of the editor that this process works for.
    """
    if address is not None:
        return Place(address, "socket")
    if home is not None:
        return Place(home, "the editor of this tool")
    for name in VARIABLES:
        if value := os.environ.get(name):
            return Place(value, f"${name}")
    try:
        here = Path.cwd()
    except OSError:
        return ToolError(Code.EDITOR_GONE, "no Neovim was named, and the working folder is gone")
    return choose(here, read_own())


def read_own() -> list[Instance]:
    """All editors of this user that live."""
    folders = files.own_folders(os.environ)
    found = [one for folder in folders for one in files.read_all(folder)]
    return [one for one in found if is_alive(one.pid)]


def shown(name: str | Path) -> str:
    """A name that can be printed, also where its bytes are no text."""
    return str(name).encode(errors="backslashreplace").decode()


def choose(here: Path, found: list[Instance]) -> Place | ToolError:
    """The editor whose project is the nearest above `here`."""
    chosen = nearest(here, [instance for instance in found if instance.socket and is_alive(instance.pid)])
    if isinstance(chosen, Instance):
        return Place(chosen.socket, f"the editor of {shown(chosen.root)}")
    return replace(chosen, message=f"{chosen.message}. Name one by `socket` (its v:servername)")


def nearest(here: Path, live: list[Instance]) -> Instance | ToolError:
    """The one with the longest root above `here`; among several in one project, the one last focused."""
    above = [instance for instance in live if _holds(instance.root, here)]
    longest = max((len(_real(instance.root)) for instance in above), default=0)
    chosen = [instance for instance in above if len(_real(instance.root)) == longest]
    if chosen:
        return max(chosen, key=lambda instance: instance.focused_at)
    text = f"no Neovim with a running bridge has {shown(here)} open"
    if live:
        text += f"; there are {names(live)}"
    return ToolError(Code.EDITOR_GONE, text)


def _real(root: str) -> str:
    return str(Path(root).resolve())


def _holds(root: str, here: Path) -> bool:
    try:
        return bool(root) and here.resolve().is_relative_to(Path(root).resolve())
    except (OSError, ValueError):
        return False  # a note that names no folder


def names(found: list[Instance]) -> str:
    """What there is, for people."""
    return ", ".join(_name(instance) for instance in found)


def _name(instance: Instance) -> str:
    known = f"{shown(instance.socket)} (process {instance.pid}, {shown(instance.root)}"
    try:
        return f"{known}, last focused {time.strftime('%H:%M:%S', time.localtime(instance.focused_at))})"
    except (OSError, OverflowError, ValueError):
        return f"{known})"  # beyond the calendar


def is_alive(pid: int) -> bool:
    """Whether there is such a process."""
    if pid <= 0:
        return False  # a group
    if os.name == "nt":
        return True  # there `kill` is no question
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    except (OverflowError, ValueError):
        return False
    return True
