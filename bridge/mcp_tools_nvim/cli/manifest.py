"""Subcommand `manifest`: everything that a Neovim exposes, as data and as the text of a skill."""

from __future__ import annotations

import argparse
import json
import os
import shlex
from pathlib import Path
from typing import Any

from ..client_config import change, skill
from ..client_config.client import NAME
from ..client_config.skill import MARK
from ..relay.bridge_client import BridgeClient
from . import editors, program, show
from .client import McpClient

_HEAD = """\
---
name: {name}
description: Use the user's running Neovim - unsaved buffers, language servers, diagnostics, debugger, undo
  history. For tasks that need state that is not on disk, or a question to the user.
---

# Neovim's tools

{mark}

If the MCP server `{name}` is connected, use its tools. Otherwise call them with this command, called
`mcp-tools` below:

    {command}

`mcp-tools call NAME '{{"argument": "value"}}'` calls a tool of the Neovim that has this project open;
`--json` prints the whole result. `mcp-tools tools` lists all tools, `mcp-tools tools NAME` shows arguments.
Exit codes: 0 done, 1 failed (the text says why), 2 wrong arguments, 3 no Neovim has this project open.
Tools of the levels `write` and `destructive` may ask the user first: wait for the answer, and do not repeat a
call that was denied.
"""


def read_manifest(endpoint: BridgeClient) -> dict[str, Any]:
    """Returns the tools, prompts and resources of a Neovim."""
    with McpClient(endpoint) as client:
        return {
            "server": NAME,
            "tools": [_tool(tool) for tool in client.pages("tools/list", "tools")],
            "prompts": [_named(prompt) for prompt in client.pages("prompts/list", "prompts")],
            "resources": [_named(each, "uri") for each in client.pages("resources/list", "resources")],
        }


def skill_text(command: list[str], found: dict[str, Any] | None = None) -> str:
    """Returns the text of a SKILL.md.

    Args:
        command: the command line of this program.
        found: the manifest to list; None = a text for every Neovim.
    """
    lines = [_HEAD.format(name=NAME, mark=MARK, command=shlex.join(command))]
    for tool in found["tools"] if found else ():
        if len(lines) == 1:
            lines += ["## Tools", ""]
        arguments = ", ".join(tool["arguments"])
        call = _one_line(f"{tool['name']}({arguments})")
        lines.append(f"- `{call}` [{tool['level']}] {_one_line(tool['description'])}")
    for title, key, kind in (("Prompts", "name", "prompts"), ("Resources", "uri", "resources")):
        if found and found[kind]:
            lines += ["", f"## {title} (`mcp-tools {kind} NAME`)", ""]
            lines += [f"- `{_one_line(each[key])}` {_one_line(each['description'])}" for each in found[kind]]
    return "\n".join(lines).rstrip() + "\n"


def _tool(tool: dict[str, Any]) -> dict[str, Any]:
    hints = tool.get("annotations") or {}
    level = (
        "read"
        if hints.get("readOnlyHint")
        else "destructive"
        if hints.get("destructiveHint", True)
        else "write"
    )
    properties = tool["inputSchema"].get("properties") or {}
    required = set(tool["inputSchema"].get("required") or ())
    arguments = [
        name if name in required else f"{name}?"
        for name in sorted(properties, key=lambda n: n not in required)
    ]
    return {**_named(tool), "level": level, "arguments": arguments}


def _named(each: dict[str, Any], key: str = "name") -> dict[str, Any]:
    return {key: each[key], "description": (each.get("description") or "").strip()}


def _one_line(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1].replace("\\n", " ").replace('\\"', '"')


def add_manifest(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `manifest`."""
    parser.add_argument(
        "--skill",
        metavar="DIR",
        help=f"write {NAME}/{skill.FILE} there; `connect CLIENT --skill` uses the directory of the client",
    )
    editors.add_choice(parser, "print JSON")


def run_manifest(options: argparse.Namespace) -> int:
    """Prints the manifest, or writes the skill."""
    found = read_manifest(editors.connect_bridge(options))
    if options.json and options.skill is None:
        show.as_json(found)
        return 0
    text = skill_text(program.command_line("user", Path.cwd()), found)
    if options.skill is None:
        print(show.printable(text), end="")
        return 0
    path = Path(os.path.expanduser(options.skill)) / NAME / skill.FILE
    change.apply([skill.skill_change(path, text)])
    if options.json:
        show.as_json({"path": str(path)})
    else:
        print(show.printable(str(path)))
    return 0
