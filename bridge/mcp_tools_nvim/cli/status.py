"""Subcommands `list` and `doctor`: running Neovims, and checks of installation and connections."""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import os
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from .. import __version__
from ..instances import files
from ..instances.choose import focused_time, is_alive, read_own, shown
from ..instances.files import Instance
from ..relay.bridge_client import BridgeClient, Missing
from . import editors, show
from .show import Exit


def add_list(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `list`."""
    editors.add_choice(parser, "print JSON")


def run_list(options: argparse.Namespace) -> int:
    """Prints a line for each Neovim; marks the one that commands here use."""
    found = sorted(read_own(), key=lambda one: (one.root, -one.focused_at))
    chosen = editors.choose_bridge(options)
    if options.json:
        show.as_json([_entry(one, chosen) for one in found])
    elif found:
        head = ("", "PID", "PROJECT", "URL", "FOCUSED")
        show.table([head, *(_row(one, chosen) for one in found)])
    else:
        print("No Neovim with a running bridge. Start one, and see :checkhealth mcp-tools")
    return 0


def _entry(one: Instance, chosen: Instance | Missing) -> dict[str, Any]:
    return {
        "pid": one.pid,
        "root": shown(one.root),
        "cwd": shown(one.cwd),
        "socket": shown(one.socket),
        "url": one.url,
        "focused_at": one.focused_at,
        "chosen": one == chosen,
    }


def _row(one: Instance, chosen: Instance | Missing) -> tuple[str, ...]:
    focused = (one.focused_at and focused_time(one, "%Y-%m-%d %H:%M:%S")) or "-"
    return ("*" if one == chosen else "", str(one.pid), shown(one.root), one.url, focused)


PACKAGES = ("mcp", "aiohttp", "msgpack")


class Finding(NamedTuple):
    """One finding; `level` is ok, info, warning or error."""

    level: str
    text: str
    advice: str = ""


def add_doctor(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `doctor`."""
    editors.add_choice(parser, "print JSON")


def run_doctor(options: argparse.Namespace) -> int:
    """Prints all findings; fails if one is an error."""
    found = [*_environment(), *_editors(), _choice(options)]
    if options.json:
        show.as_json([each._asdict() for each in found])
    else:
        for each in found:
            print(show.printable(f"{each.level.upper():<8} {each.text}"))
            if each.advice:
                print(show.printable(f"{'':8} -> {each.advice}"))
    return Exit.FAILED if any(each.level == "error" for each in found) else Exit.OK


def _environment() -> Iterator[Finding]:
    yield Finding("ok", f"mcp-tools {__version__}, Python {sys.version.split()[0]} ({sys.executable})")
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        advice = "only `serve` needs them; the bridge of a Neovim uses those of :McpTools install"
        yield Finding("info", f"not installed here: {', '.join(missing)}", advice)
    else:
        versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES)
        yield Finding("ok", versions)


def _editors() -> Iterator[Finding]:
    directories = files.own_directories(os.environ)
    found = [one for directory in directories for one in files.read_all(directory)]
    if not directories:
        advice = "set them to absolute paths outside repositories"
        yield Finding("error", "the directories in $XDG_RUNTIME_DIR and $XDG_STATE_HOME are not used", advice)
    elif not found:
        advice = "start Neovim with the plugin set up; then :checkhealth mcp-tools"
        yield Finding(
            "warning", f"no Neovim with a bridge is listed in {' or '.join(map(shown, directories))}", advice
        )
    for one in found:
        yield _editor(one)


def _editor(one: Instance) -> Finding:
    name = f"the Neovim of {shown(one.root)} (process {one.pid}, {one.url})"
    if not one.pid:
        name = f"the Neovim at {one.url}"
    elif not is_alive(one.pid):
        return Finding("ok", f"{name} has ended; the next Neovim that starts removes its instance file")
    try:
        endpoint = BridgeClient(one.url, one.token)
    except ValueError as error:
        return Finding("error", f"{name}: {error}", "run :McpTools restart in it")
    if not endpoint.is_ours():
        return Finding(
            "error", f"{name} does not answer, or another process has its port", "run :McpTools restart in it"
        )
    status = endpoint.health()
    if status is None:
        return Finding("error", f"{name} refuses its own token", "run :McpTools restart in it")
    versions: dict[str, Any] = status.get("versions", {})
    sessions, calls = status.get("sessions", {}), status.get("calls", {})
    clients = ", ".join(str(each.get("name")) for each in sessions.get("clients", [])) or "no client"
    text = f"{name}: plugin {versions.get('plugin')}, Neovim {versions.get('nvim')}; {clients}"
    text += f"; {calls.get('in_flight')} calls in flight"
    if not status.get("editor", {}).get("connected"):
        return Finding("error", f"{text}; its bridge has lost Neovim", "run :McpTools restart in it")
    if versions.get("bridge") != __version__:
        advice = "update the older one; `mcp-tools` and the plugin must have the same version"
        return Finding("warning", f"{text}; its bridge is {versions.get('bridge')}", advice)
    return Finding("ok", text)


def _choice(options: argparse.Namespace) -> Finding:
    chosen = editors.choose_bridge(options)
    if isinstance(chosen, Missing):
        return Finding("warning", f"no Neovim for this directory: {chosen.text}")
    if options.url is not None:
        return _editor(chosen)
    return Finding("ok", f"commands in this directory use {shown(chosen.root)} (process {chosen.pid})")
