"""`mcp-tools list`: the editors of this user that have a bridge."""

from __future__ import annotations

import argparse
import time
from typing import Any

from ...instances.choose import read_own, shown
from ...instances.files import Instance
from ...relay.pump import Missing
from .. import editors, show


def add(parser: argparse.ArgumentParser) -> None:
    """Its arguments."""
    editors.add_choice(parser)
    parser.add_argument("--json", action="store_true", help="for programs")


def run(options: argparse.Namespace) -> int:
    """A line each; the one that a command would take is marked."""
    found = sorted(read_own(), key=lambda one: (one.root, -one.focused_at))
    chosen = editors.choose(options)
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
    try:
        focused = (
            time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(one.focused_at)) if one.focused_at else "-"
        )
    except (OSError, OverflowError, ValueError):
        focused = "-"
    return ("*" if one == chosen else "", str(one.pid), shown(one.root), one.url, focused)
