"""Stored captures of screens, with highlight groups and colors, compared with the current screen.

A capture is `DIRECTORY/NAME.txt`. If a Neovim version differs, its own is `DIRECTORY/NAME.nvim-0.10.txt`.
"""

from __future__ import annotations

import asyncio
import difflib
import re
import string
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from .rpc import Rpc
from .terminal import HEIGHT, PATIENCE, WIDTH, Terminal

CALM = 0.6  # s without a change before a screen is stored

REMEDY = "run with --update-captures, check the result, and commit it"

LETTERS = string.ascii_lowercase + string.ascii_uppercase + string.digits
OF_NEOVIM = ("StatusLine", "TabLine")  # Neovim's colors, which differ between versions
STYLES = ("bold", "italic", "underline", "undercurl", "strikethrough", "reverse")


class Screen:
    """The cells of a screen and the highlight groups of their colors, as Neovim sends them to a UI."""

    def __init__(self) -> None:
        self.cells: list[list[tuple[str, int]]] = []
        self.styles: dict[int, str] = {0: ""}
        self.default = ""
        self.cursor = (0, 0)

    def handle(self, name: str, arguments: list[Any]) -> None:
        """Handles an event of `:help ui-linegrid`."""
        if name in ("grid_resize", "grid_clear"):
            self.cells = [[(" ", 0)] * WIDTH for _ in range(HEIGHT)]
        elif name == "default_colors_set":
            self.default = colors({"foreground": arguments[0], "background": arguments[1]})
        elif name == "hl_attr_define":
            self.styles[arguments[0]] = style(arguments[1], arguments[3])
        elif name == "grid_cursor_goto":
            self.cursor = (arguments[1], arguments[2])
        elif name == "grid_line":
            self._line(arguments[1], arguments[2], arguments[3])
        elif name == "grid_scroll":
            self._scroll(*arguments[1:6])

    def _line(self, row: int, column: int, cells: list[list[Any]]) -> None:
        style = 0
        for cell in cells:
            style = cell[1] if len(cell) > 1 else style
            for _ in range(cell[2] if len(cell) > 2 else 1):
                self.cells[row][column] = (cell[0], style)
                column += 1

    def _scroll(self, top: int, bottom: int, left: int, right: int, rows: int) -> None:
        order = range(top, bottom - rows) if rows > 0 else range(bottom - 1, top - rows - 1, -1)
        for row in order:
            self.cells[row][left:right] = self.cells[row + rows][left:right]

    def text(self) -> list[str]:
        return ["".join(cell for cell, _ in row).rstrip() for row in self.cells]

    def __str__(self) -> str:
        """Rows of text, rows with a letter for the style of each cell, and a legend."""
        letters = {"": "."}
        rows = []
        for row in self.cells:
            for _, known in row:
                letters.setdefault(self.styles.get(known, "?"), LETTERS[min(len(letters), len(LETTERS)) - 1])
            rows.append("".join(letters[self.styles.get(known, "?")] for _, known in row))
        legend = [f"{letter}  {style or self.default}" for style, letter in letters.items()]
        cursor = f"cursor: row {self.cursor[0] + 1}, column {self.cursor[1] + 1}"
        text = [re.sub(r"(?<=mcp-tools://)(\w+)/\d+", r"\1/NUMBER", row) for row in self.text()]
        text = [re.sub(r"(?<= m//p/)\d(?=/)", "N", row) for row in text]  # in a tab's label
        return "\n".join([*text, "", *rows, "", *legend, "", cursor])


def colors(attributes: Mapping[str, Any]) -> str:
    """Colors and styles as text."""
    words = [
        f"{key}=#{attributes[long]:06x}"
        for key, long in (("fg", "foreground"), ("bg", "background"), ("sp", "special"))
        if attributes.get(long, -1) >= 0
    ]
    return " ".join([*words, *(word for word in STYLES if attributes.get(word))])


def style(attributes: Mapping[str, Any], made_of: list[Mapping[str, Any]]) -> str:
    """The style of a cell: its groups from the lowest to the topmost, then the result."""
    names = [each.get("ui_name") or each.get("hi_name") or each["kind"] for each in made_of]
    once = [name for at, name in enumerate(names) if at == 0 or names[at - 1] != name]
    own = "" if once and once[-1].startswith(OF_NEOVIM) else colors(attributes)
    return " ".join(filter(None, ["+".join(once), own]))


@asynccontextmanager
async def mirrored(terminal: Terminal) -> AsyncIterator[Callable[[], Awaitable[Screen]]]:
    """A second UI of the same size; the yielded function waits for a frame and returns the screen."""
    rpc = await Rpc.connect(terminal.nvim.socket)
    screen = Screen()

    async def frame() -> Screen:
        while True:
            method, events = await rpc.notifications.get()
            assert method == "redraw"
            for name, *calls in events:
                for arguments in calls:
                    screen.handle(name, arguments)
            if events[-1][0] == "flush":
                return screen

    try:
        options = {"rgb": True, "ext_linegrid": True, "ext_hlstate": True}
        await rpc.request("nvim_ui_attach", WIDTH, HEIGHT, options)
        yield frame
    finally:
        rpc.close()


class Captures:
    """The captures in a directory, for one Neovim version such as `0.11`; `update` rewrites them."""

    def __init__(self, directory: Path, version: str, update: bool) -> None:
        self.directory, self.version, self.update = directory, version, update

    def kept(self, name: str) -> str | None:
        """The capture for this Neovim."""
        own = self.directory / f"{name}.nvim-{self.version}.txt"
        path = own if own.exists() else self.directory / f"{name}.txt"
        return path.read_text().rstrip("\n") if path.exists() else None

    def write(self, name: str, now: str) -> None:
        """Stores a capture; at the end of the run `join` merges those that are the same on all Neovims."""
        path = self.directory / f"{name}.nvim-{self.version}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(now + "\n")

    def matches(self, name: str, now: str) -> None:
        """Compares a text with its capture."""
        if self.update:
            self.write(name, now)
        kept = self.kept(name)
        assert kept is not None, f"{name} has no capture: {REMEDY}"
        assert now == kept, difference(name, kept, now)

    async def shows(self, terminal: Terminal, name: str) -> None:
        """Waits until a screen matches its capture, or does not change while captures are updated."""
        kept, now = None if self.update else self.kept(name), ""
        assert self.update or kept is not None, f"{name} has no capture: {REMEDY}"
        async with mirrored(terminal) as frame:
            try:
                async with asyncio.timeout(PATIENCE / 1000):
                    while kept is None or now != kept:
                        async with asyncio.timeout(CALM if kept is None and now else None):
                            screen = await frame()
                        now = str(screen)
            except TimeoutError:
                assert kept is None, difference(name, kept, now)
            # The second UI shows the same as the terminal.
            await terminal.until(lambda text: plain(text) == plain("\n".join(screen.text())), f"{name} in it")
        if self.update:
            self.write(name, now)


def plain(screen: str) -> list[str]:
    """Rows without trailing blanks."""
    return [row.rstrip() for row in screen.rstrip().splitlines()]


def difference(name: str, kept: str, now: str) -> str:
    """The difference as a diff."""
    before = f"{name} as stored"
    lines = difflib.unified_diff(kept.splitlines(), now.splitlines(), before, "now", lineterm="", n=1)
    return "\n".join([f"the screen has changed; if that is intended: {REMEDY}", *lines])


def join(directory: Path, required: str) -> None:
    """Merges captures that are the same as that of the required Neovim."""
    for own in sorted(directory.rglob(f"*.nvim-{required}.txt")):
        own.rename(own.with_name(own.name.replace(f".nvim-{required}", "")))
    for own in sorted(directory.rglob("*.nvim-*.txt")):
        common = own.with_name(own.name[: own.name.index(".nvim-")] + ".txt")
        if common.exists() and common.read_text() == own.read_text():
            own.unlink()
