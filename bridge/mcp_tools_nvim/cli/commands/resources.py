"""`mcp-tools resources`: what can be read, and what is in one."""

from __future__ import annotations

import argparse

from .. import editors, show
from ..client import Client


def add(parser: argparse.ArgumentParser) -> None:
    """Its arguments."""
    parser.add_argument("uri", nargs="?", help="what is in this one, such as nvim://buffers")
    parser.add_argument("--json", action="store_true", help="for programs: as MCP has it")
    editors.add_choice(parser)


def run(options: argparse.Namespace) -> int:
    """A line each, templates last; or the contents of one."""
    with Client(editors.connect(options)) as client:
        if options.uri is not None:
            contents = client.request("resources/read", {"uri": options.uri}).get("contents", [])
        else:
            found = list(client.pages("resources/list", "resources"))
            templates = list(client.pages("resources/templates/list", "resourceTemplates"))
    if options.uri is not None:
        if options.json:
            show.as_json(contents)
        else:
            for each in contents:
                show.block({"type": "resource", "resource": each})
    elif options.json:
        show.as_json({"resources": found, "resourceTemplates": templates})
    else:
        rows = [(each["uri"], each.get("description") or each["name"]) for each in found]
        rows += [(each["uriTemplate"], each.get("description") or each["name"]) for each in templates]
        show.table(rows)
    return 0
