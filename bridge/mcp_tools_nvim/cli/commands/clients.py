"""`mcp-tools clients`: the AI clients that can be connected, and which of them are."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ...client_config import change
from ...client_config.client import Client, Scope, Stdio
from ...client_config.known import CLIENTS
from .. import connecting, editors, show


def add(parser: argparse.ArgumentParser) -> None:
    """Its arguments."""
    parser.add_argument("--project", action="store_true", help="by the files of the project, not by yours")
    parser.add_argument("--json", action="store_true", help="for programs")
    editors.add_choice(parser)


def run(options: argparse.Namespace) -> int:
    """A line each; those that are installed first."""
    scope, root = connecting.scope_of(options)
    found: list[dict[str, Any]] = [
        {
            "name": name,
            "title": client.title,
            "installed": client.is_installed,
            **_state(client, scope, root),
        }
        for name, client in CLIENTS.items()
    ]
    found.sort(key=lambda each: not each["installed"])
    if options.json:
        show.as_json(found)
    else:
        rows = [
            (each["name"], each["title"], "installed" if each["installed"] else "", str(each["state"]))
            for each in found
        ]
        show.table([("NAME", "CLIENT", "", "STATE"), *rows])
    return 0


def _state(client: Client, scope: Scope, root: Path) -> dict[str, str]:
    if scope not in client.files:
        return {"state": "has no files of a project"}
    try:
        made = change.disconnect(client, scope, root)
        change.connect(client, Stdio(""), scope, root)
    except change.ChangeError as error:
        return {"state": str(error)}
    return {"state": "not connected" if made.is_empty else "connected", "path": str(made.path)}
