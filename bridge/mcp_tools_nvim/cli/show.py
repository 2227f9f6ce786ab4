"""Output of commands: tables, texts, progress, errors; control characters are replaced."""

from __future__ import annotations

import json
import shutil
import sys
import unicodedata
from collections.abc import Sequence
from enum import IntEnum
from typing import Any

from ..errors import BridgeError

BAR = 24
_KEPT = "\n\t"


class Exit(IntEnum):
    """Exit codes; `mcp-tools --help` names them."""

    OK = 0
    FAILED = 1  # the tool, or the request
    USAGE = 2
    NO_EDITOR = 3
    INTERRUPTED = 130


class CommandError(BridgeError):
    """An error that is printed on stderr, without a traceback."""

    def __init__(self, text: str, code: Exit = Exit.FAILED) -> None:
        super().__init__(text)
        self.code = code


def printable(text: str) -> str:
    """Returns text with control characters replaced."""
    return "".join(
        char if char in _KEPT or _is_printable(char) else "\N{REPLACEMENT CHARACTER}" for char in text
    )


def _is_printable(char: str) -> bool:
    return unicodedata.category(char)[0] != "C"


def as_json(value: Any) -> None:
    """Prints a value as JSON, with control characters escaped."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    if not text.isprintable():
        text = "".join(
            char if char == "\n" or _is_printable(char) else json.dumps(char)[1:-1] for char in text
        )
    print(text)


def table(rows: Sequence[Sequence[str]]) -> None:
    """Prints columns; the last one is cut at the edge of a terminal."""
    wide = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    sizes = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))] if rows else []
    for row in rows:
        line = "  ".join(cell.ljust(size) for cell, size in zip(row, sizes, strict=True)).rstrip()
        line = printable(line.replace("\n", " "))
        print(line[: wide - 1] + "…" if wide and len(line) > wide else line)


def block(content: dict[str, Any]) -> None:
    """Prints a content block: text as it is, a description of anything else."""
    kind = content.get("type")
    if kind == "text":
        print(_for_terminal(content.get("text", "")))
    elif kind == "resource":
        resource = content.get("resource", {})
        print(
            _for_terminal(
                resource.get("text", f"[{resource.get('mimeType', 'bytes')} {resource.get('uri')}]")
            )
        )
    elif kind == "resource_link":
        print(printable(f"[{content.get('name', 'resource')}: {content.get('uri')}]"))
    else:
        size = len(content.get("data", "")) * 3 // 4
        print(printable(f"[{kind} {content.get('mimeType', '')}, {size} bytes; --json has it]"))


class Bar:
    """Progress on a terminal's stderr; nothing elsewhere."""

    def __init__(self) -> None:
        self._on = sys.stderr.isatty()
        self._shown = False

    def show(self, done: float, total: float | None, message: str | None) -> None:
        """Shows the latest progress."""
        if not self._on:
            return
        if total:
            part = max(0.0, min(1.0, done / total))
            bar = f"[{'#' * round(part * BAR):<{BAR}}] {part:4.0%}"
        else:
            bar = f"{done:g}"
        wide = shutil.get_terminal_size().columns
        text = printable(f"{bar} {message or ''}".replace("\n", " "))[: wide - 1]
        sys.stderr.write(f"\r\033[K{text}")
        sys.stderr.flush()
        self._shown = True

    def clear(self) -> None:
        """Removes the bar."""
        if self._shown:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
            self._shown = False


def _for_terminal(text: str) -> str:
    return printable(text) if sys.stdout.isatty() else text
