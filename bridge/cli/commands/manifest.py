"""`mcp-tools manifest`: all that an editor offers, for agents that read files; also as a SKILL.md."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from .. import editors, show
from ..client import Client
from ..fault import CommandError

SKILL = "nvim-tools"
_HEAD = """\
---
name: nvim-tools
description: Use the person's running Neovim - unsaved buffers, language servers, diagnostics, debugger,
  undo history and the person. For tasks that need what is not on disk, or a question to the person.
---

# Neovim's tools

`mcp-tools call NAME '{"argument": "value"}'` calls a tool of the Neovim that has this project open; `--json`
prints the whole result. `mcp-tools tools NAME` shows a tool's arguments. Exit codes: 0 done, 1 failed (the
text says why), 2 wrong arguments, 3 no Neovim has this project open. Tools of the levels `write` and
`destructive` may ask the person first: wait for the answer, and do not call again what was denied.
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Its arguments."""
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.add_argument(
        "--skill", metavar="DIR", help=f"write {SKILL}/SKILL.md there, such as into ~/.claude/skills"
    )
    editors.add_choice(parser)


def run(options: argparse.Namespace) -> int:
    """Prints it, or writes the folder."""
    with Client(editors.connect(options)) as client:
        found = {
            "server": "nvim-tools",
            "tools": [_tool(tool) for tool in client.pages("tools/list", "tools")],
            "prompts": [_named(prompt) for prompt in client.pages("prompts/list", "prompts")],
            "resources": [_named(each, "uri") for each in client.pages("resources/list", "resources")],
        }
    if options.skill is not None:
        path = Path(options.skill).expanduser() / SKILL / "SKILL.md"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(_skill(found), encoding="utf-8")
        except OSError as error:
            raise CommandError(f"--skill: {path}: {error.strerror or error}") from error
        print(path)
    elif options.json:
        show.as_json(found)
    else:
        print(show.plain(_skill(found)), end="")
    return 0


def _tool(tool: dict[str, Any]) -> dict[str, Any]:
    hints = tool.get("annotations") or {}
    level = (
        "read" if hints.get("readOnlyHint") else "destructive" if hints.get("destructiveHint") else "write"
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


def _skill(found: dict[str, Any]) -> str:
    lines = [_HEAD, "## Tools", ""]
    for tool in found["tools"]:
        arguments = ", ".join(tool["arguments"])
        lines.append(f"- `{tool['name']}({arguments})` [{tool['level']}] {_one_line(tool['description'])}")
    for title, key, kind in (("Prompts", "name", "prompts"), ("Resources", "uri", "resources")):
        if found[kind]:
            lines += ["", f"## {title} (`mcp-tools {kind} NAME`)", ""]
            lines += [f"- `{each[key]}` {_one_line(each['description'])}" for each in found[kind]]
    return "\n".join(lines) + "\n"


def _one_line(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1].replace("\\n", " ").replace('\\"', '"')
