"""What a terminal shows, as a picture for the README."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

CELL, LEADING, SIZE, MARGIN = 7.8, 17, 13, 14  # pixels
PAPER, INK = "#14161b", "#e0e2ea"  # of Neovim
BASE = ["#2a2f3a", "#f07178", "#a3d977", "#e6c07b", "#82aaff", "#c792ea", "#7fdbca", "#c8cdd8"]
BRIGHT = ["#8b95a7", "#ff8b92", "#bff08f", "#ffd98f", "#9cc4ff", "#ddb3ff", "#a0f0e0", "#ffffff"]
STEPS = (0, 95, 135, 175, 215, 255)
CODE = re.compile(r"\x1b\[([\d;:]*)m")
WORDS = re.compile(r"\S+(?: \S+)*")  # more than one space may be drawn as one


@dataclass(frozen=True)
class Style:
    """How a run looks; None = as the terminal does without being told."""

    ink: str | None = None
    paper: str | None = None
    bold: bool = False
    dim: bool = False
    italic: bool = False
    underline: bool = False
    reverse: bool = False


def indexed(number: int) -> str:
    """One of the 256 colours."""
    if number < 16:
        return (BASE + BRIGHT)[number]
    if number >= 232:
        return "#" + f"{8 + 10 * (number - 232):02x}" * 3
    number -= 16
    return "#" + "".join(f"{STEPS[number // power % 6]:02x}" for power in (36, 6, 1))


FLAGS = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "reverse"}
ENDS = {
    22: ("bold", "dim"),
    23: ("italic",),
    24: ("underline",),
    27: ("reverse",),
    39: ("ink",),
    49: ("paper",),
}


def styled(style: Style, codes: str) -> Style:
    """The style after an escape sequence."""
    numbers = [int(code or 0) for code in codes.replace(":", ";").split(";")]
    while numbers:
        code = numbers.pop(0)
        changed: dict[str, Any] = {}
        if code == 0:
            style = Style()
        elif code in FLAGS:
            changed[FLAGS[code]] = True
        elif code in ENDS:
            changed = {name: getattr(Style(), name) for name in ENDS[code]}
        elif code in (38, 48):
            kind = numbers.pop(0)
            if kind == 5:
                colour = indexed(numbers.pop(0))
            else:
                colour = "#" + "".join(f"{part:02x}" for part in numbers[:3])
                del numbers[:3]
            changed["ink" if code == 38 else "paper"] = colour
        elif 30 <= code <= 37 or 90 <= code <= 97:
            changed["ink"] = (BASE if code < 90 else BRIGHT)[code % 10]
        elif 40 <= code <= 47 or 100 <= code <= 107:
            changed["paper"] = (BASE if code < 100 else BRIGHT)[code % 10]
        style = replace(style, **changed)
    return style


def cells(text: str) -> int:
    """How many columns a text takes."""
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(unicodedata.combining(char) > 0 for char in text)


def runs(line: str, style: Style) -> Iterator[tuple[int, str, Style]]:
    """The parts of a line that look the same: column, text, style."""
    column = 0
    for number, part in enumerate(CODE.split(line)):
        if number % 2:
            style = styled(style, part)
        elif part:
            yield column, part, style
            column += cells(part)


def last(line: str, style: Style) -> Style:
    """The style at the end of a line, with which the next begins."""
    for codes in CODE.findall(line):
        style = styled(style, codes)
    return style


def draw(lines: list[str], columns: int, title: str, *, light: bool = False) -> str:
    """The picture; `light`: of a terminal whose paper is light."""
    own_ink, own_paper = (PAPER, INK) if light else (INK, PAPER)
    width, height = round(columns * CELL) + 2 * MARGIN, len(lines) * LEADING + 2 * MARGIN
    papers, texts, style = [], [], Style()
    for row, line in enumerate(lines):
        top = MARGIN + row * LEADING
        for column, text, look in runs(line, style):
            ink, paper = look.ink or own_ink, look.paper
            if look.reverse:
                ink, paper = paper or own_paper, look.ink or own_ink
            left, length = MARGIN + column * CELL, cells(text) * CELL
            if paper and paper != own_paper:
                place = f'x="{left:.1f}" y="{top}" width="{length:.1f}" height="{LEADING}"'
                papers.append(f'<rect {place} fill="{paper}"/>')
            for word in WORDS.finditer(text):
                left = MARGIN + (column + cells(text[: word.start()])) * CELL
                marks = "".join(
                    f' {name}="{value}"'
                    for name, value, wanted in (
                        ("fill", ink, ink != own_ink),
                        ("font-weight", "700", look.bold),
                        ("opacity", "0.6", look.dim),
                        ("font-style", "italic", look.italic),
                        ("text-decoration", "underline", look.underline),
                    )
                    if wanted
                )
                place = f'x="{left:.1f}" y="{top + SIZE}" textLength="{cells(word[0]) * CELL:.1f}"'
                texts.append(f"<text {place}{marks}>{html.escape(word[0], quote=False)}</text>")
        style = last(line, style)
    font = f"font: {SIZE}px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" role="img">',
            f"<title>{html.escape(title)}</title>",
            f"<style>text {{ {font}; white-space: pre }}</style>",
            f'<rect width="{width}" height="{height}" rx="8" fill="{own_paper}"/>',
            *papers,
            f'<g fill="{own_ink}">',
            *texts,
            "</g>",
            "</svg>",
            "",
        ]
    )
