"""Docstrings in Google style: what a tool does, and what its arguments mean.

Receives: a docstring. Sends: its text without sections, and the entries of `Args:`.
Does not know about: functions, schemas.
"""

from __future__ import annotations

import inspect
import re

SECTION = re.compile(r"(\w[\w ]*):\s*$")
ARGUMENTS = ("args", "arguments", "parameters")
SECTIONS = {
    *ARGUMENTS,
    "attributes",
    "example",
    "examples",
    "keyword args",
    "note",
    "notes",
    "raises",
    "returns",
    "see also",
    "todo",
    "warning",
    "warnings",
    "yields",
}
ENTRY = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")


def parse(docstring: str | None) -> tuple[str, dict[str, str]]:
    """Split a docstring into the description and the descriptions of the arguments."""
    text: list[str] = []
    arguments: dict[str, str] = {}
    section = ""
    name: str | None = None
    indent: int | None = None
    for line in inspect.cleandoc(docstring or "").splitlines():
        heading = SECTION.match(line)
        if heading and heading[1].lower() in SECTIONS:
            section, name, indent = heading[1].lower(), None, None
        elif not section:
            text.append(line)
        elif line.strip() and not line.startswith(" "):
            section = ""  # back at the margin: the section has ended
            text.append(line)
        elif section in ARGUMENTS and line.strip():
            depth = len(line) - len(line.lstrip())
            indent = depth if indent is None else indent
            entry = ENTRY.match(line.strip()) if depth <= indent else None
            if entry:
                name = entry[1]
                arguments[name] = entry[2]
            elif name:
                arguments[name] = f"{arguments[name]} {line.strip()}".strip()
    return "\n".join(text).strip(), arguments
