"""`mcp-tools prompts`: what there is, and what one says."""

from __future__ import annotations

import argparse

from .. import editors, show
from ..client import Client
from .call import read_arguments


def add(parser: argparse.ArgumentParser) -> None:
    """Its arguments."""
    parser.add_argument("prompt", nargs="?", help="what this one says")
    parser.add_argument(
        "arguments", nargs="?", default="{}", help="JSON object of texts; - reads it from stdin"
    )
    parser.add_argument("--json", action="store_true", help="for programs: as MCP has it")
    editors.add_choice(parser)


def run(options: argparse.Namespace) -> int:
    """A line each, or the messages of one."""
    arguments = read_arguments(options.arguments)
    with Client(editors.connect(options)) as client:
        if options.prompt is None:
            prompts = list(client.pages("prompts/list", "prompts"))
        else:
            prompt = client.request("prompts/get", {"name": options.prompt, "arguments": arguments})
    if options.prompt is None:
        if options.json:
            show.as_json(prompts)
        else:
            show.table([(each["name"], each.get("description", "")) for each in prompts])
    elif options.json:
        show.as_json(prompt)
    else:
        for message in prompt.get("messages", []):
            print(show.plain(f"{message['role']}:"))
            show.block(message["content"])
    return 0
