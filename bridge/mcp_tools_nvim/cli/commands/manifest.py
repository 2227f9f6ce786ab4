"""`mcp-tools manifest`: all that an editor offers, for agents that read files; also as a SKILL.md."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from ...client_config import skill
from ...client_config.change import ChangeError
from ...client_config.client import NAME
from .. import connecting, editors, offered, program, show


def add(parser: argparse.ArgumentParser) -> None:
    """Its arguments."""
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.add_argument(
        "--skill",
        metavar="DIR",
        help=f"write {NAME}/{skill.FILE} there; `connect CLIENT --skill` knows the place of each client",
    )
    editors.add_choice(parser)


def run(options: argparse.Namespace) -> int:
    """Prints it, or writes the folder."""
    found = offered.ask(editors.connect(options))
    if options.json and options.skill is None:
        show.as_json(found)
        return 0
    text = offered.skill(program.command_line("user", Path.cwd()), found)
    if options.skill is None:
        print(show.plain(text), end="")
        return 0
    path = Path(os.path.expanduser(options.skill)) / NAME / skill.FILE
    try:
        skill.apply(skill.put(path, text))
    except ChangeError as error:
        raise connecting.attempt_fault(error) from error
    if options.json:
        show.as_json({"path": str(path)})
    else:
        print(show.plain(str(path)))
    return 0
