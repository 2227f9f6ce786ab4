"""Lays text out as Vim help: 78 columns, tags at the right, lists that hang."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable

WIDTH = 78
NO_BREAK = "\N{NO-BREAK SPACE}"
LONGEST_CODE = 50


def plain(text: str) -> str:
    """Text whose references are help links and whose `code` stays on one line where that is possible."""
    text = re.sub(r"`:h ([^`]+)`", r"|\1|", text)

    def keep(code: re.Match[str]) -> str:
        return code.group().replace(" ", NO_BREAK) if len(code.group()) <= LONGEST_CODE else code.group()

    return re.sub(r"`[^`]*`", keep, text)


def wrap(text: str, indent: int = 0, hang: int = 0, first: str = "") -> list[str]:
    """One paragraph.

    Args:
        text: its words.
        indent: columns before every line.
        hang: further columns before all lines but the first.
        first: what the first line begins with, after the indent.
    """
    lines = textwrap.wrap(
        first + plain(text),
        WIDTH,
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + hang),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(NO_BREAK, " ") for line in lines]


def paragraphs(text: str, indent: int = 0) -> list[str]:
    """Prose: lines that follow each other are joined, blank ones part paragraphs."""
    lines: list[str] = []
    for part in re.split(r"\n\s*\n", text.strip()):
        lines += [*([""] if lines else []), *wrap(" ".join(part.split()), indent)]
    return lines


def tagged(left: str, tag: str) -> list[str]:
    """`left`, with a help tag at the right; on a line of its own above when there is no room."""
    target = f"*{tag}*"
    if len(left) + len(target) + 2 > WIDTH:
        return [target.rjust(WIDTH), left]
    return [left + target.rjust(WIDTH - len(left))]


def item(name: str, kind: str, text: str, indent: int = 4) -> list[str]:
    """One entry of a list: `{name} (type) text`. A type that fills a line may be broken at its bars."""
    if len(kind) > LONGEST_CODE:
        kind = kind.replace("|", " | ")
    return wrap(f"(`{kind}`) {text}".strip(), indent, 4, f"{name} " if name else "")


def table(rows: Iterable[tuple[str, str]], indent: int = 4, gap: int = 2) -> list[str]:
    """Two columns: a short name, and text that wraps beside it."""
    rows = list(rows)
    width = max((len(name) for name, _ in rows), default=0) + gap
    lines: list[str] = []
    for name, text in rows:
        lines += wrap(text, indent, width, name.ljust(width).replace(" ", NO_BREAK))
    return lines
