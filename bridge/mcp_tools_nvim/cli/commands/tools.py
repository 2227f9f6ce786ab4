"""`mcp-tools tools`: what an editor offers; of one tool also its schema."""

from __future__ import annotations

import argparse

from .. import editors, show
from ..client import Client
from ..fault import CommandError, Exit


def add(parser: argparse.ArgumentParser) -> None:
    """Its arguments."""
    parser.add_argument("tool", nargs="?", help="all that is known of this one")
    parser.add_argument("--json", action="store_true", help="for programs: definitions as MCP has them")
    editors.add_choice(parser)


def run(options: argparse.Namespace) -> int:
    """A line each, or one definition."""
    with Client(editors.connect(options)) as client:
        tools = list(client.pages("tools/list", "tools"))
    if options.tool is not None:
        tools = [
            tool
            for tool in tools
            if tool["name"] == options.tool or tool["name"].endswith(f"_{options.tool}")
        ]
        exact = [tool for tool in tools if tool["name"] in (options.tool, f"nvim_{options.tool}")]
        tools = exact or tools
        if not tools:
            raise CommandError(f"there is no tool {options.tool}; `mcp-tools tools` lists them", Exit.FAILED)
    if options.json:
        show.as_json(tools)
    elif options.tool is not None:
        for tool in tools:
            print(show.plain(f"{tool['name']}\n\n{tool.get('description', '')}\n"))
            show.as_json(tool["inputSchema"])
    else:
        show.table([(tool["name"], tool.get("description", "").split("\n")[0]) for tool in tools])
    return 0
