"""Finds the Neovim that a program means: a named one, the one it runs in, or that of its project."""

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
"""Variables with Neovim's address: it sets the first one for child processes, the user may set the second."""


class Place(NamedTuple):
    """The address of a Neovim, and where it is from."""

    address: str
    origin: str


def find(address: str | None = None, home: str | None = None) -> Place | ToolError:
    """Finds the Neovim for this process.

    Args:
        address: its `v:servername`; else `home`, $NVIM, $NVIM_LISTEN_ADDRESS or the project is used.
        home: the address of the Neovim that this process works for.
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
        return ToolError(
            Code.EDITOR_GONE, "no Neovim was named, and the working directory does not exist any more"
        )
    return choose(here, read_own())


def read_own() -> list[Instance]:
    """Returns the running Neovims of this user."""
    directories = files.own_directories(os.environ)
    found = [one for directory in directories for one in files.read_all(directory)]
    return [one for one in found if is_alive(one.pid)]


def shown(name: str | Path) -> str:
    """Returns a name that can be printed, even if its bytes are not valid text."""
    return str(name).encode(errors="backslashreplace").decode()


def choose(here: Path, found: list[Instance]) -> Place | ToolError:
    """Returns the Neovim whose project is the nearest one above `here`."""
    chosen = nearest(here, [instance for instance in found if instance.socket and is_alive(instance.pid)])
    if isinstance(chosen, Instance):
        return Place(chosen.socket, f"the editor of {shown(chosen.root)}")
    return replace(chosen, message=f"{chosen.message}. Name one by `socket` (its v:servername)")


def nearest(here: Path, live: list[Instance]) -> Instance | ToolError:
    """Returns the instance with the longest root above `here`; the last focused one of several."""
    above = [instance for instance in live if holds(instance.root, here)]
    longest = max((len(_real(instance.root)) for instance in above), default=0)
    chosen = [instance for instance in above if len(_real(instance.root)) == longest]
    if chosen:
        return max(chosen, key=lambda instance: instance.focused_at)
    text = f"no Neovim with a running bridge has {shown(here)} open"
    if live:
        text += f"; running: {names(live)}"
    return ToolError(Code.EDITOR_GONE, text)


def _real(root: str) -> str:
    return str(Path(root).resolve())


def holds(root: str, here: Path) -> bool:
    """Whether a directory is a root or in it."""
    try:
        return bool(root) and here.resolve().is_relative_to(Path(root).resolve())
    except (OSError, ValueError):
        return False  # the root is not a valid path


def names(found: list[Instance]) -> str:
    """Returns a description of instances for the user."""
    return ", ".join(_name(instance) for instance in found)


def _name(instance: Instance) -> str:
    focused = focused_time(instance, ", last focused %H:%M:%S")
    return f"{shown(instance.socket)} (process {instance.pid}, {shown(instance.root)}{focused})"


def focused_time(instance: Instance, form: str) -> str:
    """Returns when an instance was last focused, formatted by `strftime`; empty for an invalid time."""
    try:
        return time.strftime(form, time.localtime(instance.focused_at))
    except (OSError, OverflowError, ValueError):
        return ""


def is_alive(pid: int) -> bool:
    """Whether a process exists."""
    if pid <= 0:
        return False  # a group
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    except (OverflowError, ValueError):
        return False
    return True
