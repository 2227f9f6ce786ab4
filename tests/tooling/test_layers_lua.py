"""The layers of the Lua side: what every file may require, as one list, computed against the sources.

A require inside a function, `package.loaded[…]` and a module's name in a table of strings count as well: they
hide an arrow, they do not turn it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
LUA = ROOT / "lua" / "mcp-tools"

LAYERS = (
    "plugin",
    "command/ health/",
    "init",
    "approval groups registry callers/ rpc/",
    "core",
    "ui/",
    "agents/",
    "loading/",
    "python_worker/",
    "mounts/",
    "bridge/",
    "calls/ approval/",
    "editor/",
    "scope/",
    "registry/",
    "schema/ privacy/",
    "instances/",
    "files/",
    "config/",
    "notify",
    "log",
    "content",
    "util/",
    "errors types",
)
"""From the top down: a file may require what stands below it. A name with a slash is a folder. Files of a
folder may know each other; what else shares a line may not."""

EDITOR_LAYERS = (
    "language_server/",
    "agents/ context/ lookup/ runner/ symbol/",
    "diagnostics/",
    "lsp/",
    "search/",
    "dap/ edit/ git/ plugins/ quickfix/ shell/ treesitter/ user/",
    "result/ review/",
    "execute watch",
    "buffer/",
    "arguments background position process/ symbol_tree text/",
)
"""The same for the parts of editor/."""

DRAWERS = "tools/ resources/ prompts/ agents/known/"
"""One thing, one file, loaded by name (loading/bundled, agents/definitions); nothing else may mention
them."""

KNOWN_AGENTS = "agents/known/"

DRAWERS_MAY = "init editor/ instances/ privacy/ files/ log content errors util/"
"""All that they may require: what they are made of, and of the plugin itself its public API."""

BY_NAME = {"loading/bundled": "", "loading/init": "loading/ext loading/python", "agents/definitions": ""}
"""Files that put the name of a module together → what they reach so, besides drawers. In other files a name
that ends in a dot stands for the whole folder."""

TOKEN = re.compile(
    r"--\[(=*)\[.*?\]\1\]|--[^\n]*|\[(=*)\[.*?\]\2\]"
    r"|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"|[A-Za-z_]\w*|\s+|.",
    re.DOTALL,
)


class Arrow(NamedTuple):
    """One mention of a module in a file; both as paths without extension, from the folder of the sources."""

    path: Path
    line: int
    source: str
    target: str

    @property
    def name(self) -> str:
        return f"{self.source} → {self.target}"

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.name}"


class Tree:
    """The modules below a folder and the arrows between them."""

    def __init__(self, root: Path, plugin: Path | None = None) -> None:
        self.modules = {
            path: path.relative_to(root).with_suffix("").as_posix() for path in sorted(root.rglob("*.lua"))
        }
        if plugin:
            self.modules[plugin] = "plugin"
        self.names = set(self.modules.values())
        self.odd: list[str] = []
        self.arrows = [arrow for path in self.modules for arrow in self._arrows_of(path)]

    def _arrows_of(self, path: Path) -> Iterator[Arrow]:
        text, source = path.read_text(), self.modules[path]
        before, line = ["", "", ""], 1
        for match in TOKEN.finditer(text):
            token = match.group()
            if token[0] in "'\"":
                for target in self._targets(path, line, token[1:-1], before):
                    if target != source:
                        yield Arrow(path, line, source, target)
            line += token.count("\n")
            if not token.isspace() and not token.startswith("--"):
                before = [*before[1:], token]

    def _targets(self, path: Path, line: int, text: str, before: list[str]) -> list[str]:
        """The modules that a string stands for."""
        required = "require" in before[-2:]
        if text == "mcp-tools":
            return ["init"] if required else []
        if not text.startswith("mcp-tools.") or "nvim_create_augroup" in before:
            return []
        name, source = text.removeprefix("mcp-tools.").replace(".", "/"), self.modules[path]
        if source in BY_NAME and (name.endswith("/") or "%" in name):
            return BY_NAME[source].split()
        if name.endswith("/"):
            return sorted(each for each in self.names if each.startswith(name))
        found = [each for each in (name, f"{name}/init") if each in self.names]
        if not found and (required or "%" in name):
            self.odd.append(f"{path}:{line}: {source} → {text}: there is no such module")
        return found[:1]

    def cycles(self) -> list[Arrow]:
        """Every arrow from whose end a way leads back to its beginning."""
        below: dict[str, set[str]] = {name: set() for name in self.names}
        for arrow in self.arrows:
            below[arrow.source].add(arrow.target)
        reach = {name: reached_from(name, below) for name in below}
        return [arrow for arrow in self.arrows if arrow.source in reach[arrow.target]]


def reached_from(start: str, below: dict[str, set[str]]) -> set[str]:
    """Every module that the arrows lead to."""
    seen: set[str] = set()
    rest = [start]
    while rest:
        rest += (new := below[rest.pop()] - seen)
        seen |= new
    return seen


def part_of(module: str) -> str:
    """The folder of a module, or the module itself when it lies at the root."""
    top, slash, _ = module.partition("/")
    return KNOWN_AGENTS if module.startswith(KNOWN_AGENTS) else top + slash


def layer_of(part: str, layers: tuple[str, ...] = LAYERS) -> int | None:
    """Its place in the list, counted from the top."""
    return next((place for place, line in enumerate(layers) if part in line.split()), None)


def editor_part_of(module: str) -> str:
    """The part of editor/ that a module of it belongs to."""
    return part_of(module.removeprefix("editor/"))


def is_allowed(arrow: Arrow) -> bool:
    """Does the list let the source require the target?"""
    source, target = part_of(arrow.source), part_of(arrow.target)
    if target in DRAWERS.split():
        return source == target
    if source in DRAWERS.split():
        return target in DRAWERS_MAY.split()
    if source == target == "editor/":
        source, target = editor_part_of(arrow.source), editor_part_of(arrow.target)
        upper, lower = layer_of(source, EDITOR_LAYERS), layer_of(target, EDITOR_LAYERS)
    else:
        upper, lower = layer_of(source), layer_of(target)
    return source == target or (upper is not None and lower is not None and upper < lower)


def unplaced(tree: Tree) -> list[str]:
    """Modules of parts that the lists do not have."""
    return sorted(
        name
        for name in tree.names
        if (layer_of(part_of(name)) is None and part_of(name) not in DRAWERS.split())
        or (part_of(name) == "editor/" and layer_of(editor_part_of(name), EDITOR_LAYERS) is None)
    )


@pytest.fixture(scope="module")
def tree() -> Tree:
    return Tree(LUA, ROOT / "plugin" / "mcp-tools.lua")


def test_arrows_run_down(tree: Tree) -> None:
    """Nothing requires what the list above does not let it."""
    assert [str(arrow) for arrow in tree.arrows if not is_allowed(arrow)] == []
    assert tree.odd == []


def test_every_file_has_a_place(tree: Tree) -> None:
    """The list names every part, and nothing that is not there but what is to come."""
    assert unplaced(tree) == []
    parts = {part_of(name) for name in tree.names}
    assert {part for line in LAYERS for part in line.split()} - parts == set()
    assert set(DRAWERS.split()) <= parts
    editor_parts = {editor_part_of(name) for name in tree.names if part_of(name) == "editor/"}
    assert {part for line in EDITOR_LAYERS for part in line.split()} == editor_parts


def test_there_is_no_cycle(tree: Tree) -> None:
    """No module comes back to itself, not within a folder either."""
    assert [str(arrow) for arrow in tree.cycles()] == []


FOREIGN = re.compile(
    r"(?<!['\"])\brequire\b\s*(?:[,(]\s*(?:debug\.traceback\s*,\s*)?(?P<module>['\"][^'\"]*['\"]|[\w.]+)"
    r"|(?P<string>['\"][^'\"]*['\"]))"
)
BY_VARIABLE = {"loading/bundled", "init", "scope/listing", "registry/store", "util/optional"}
"""Files that `require` a module of ours by a variable, and the one that loads those that are not ours."""


def foreign(source: str, text: str) -> list[str]:
    """The modules that a file requires and that are neither ours nor Neovim's, or may not be."""
    code = re.sub(r"--[^\n]*", "", text)
    return [
        f"{source}: {name}"
        for name in (match["module"] or match["string"] for match in FOREIGN.finditer(code))
        if not (name[1:].startswith(("mcp-tools", "vim.")) if name[0] in "'\"" else source in BY_VARIABLE)
    ]


def test_modules_that_are_not_ours_are_loaded_by_one_file(tree: Tree) -> None:
    """A plain `require` of a module that is not installed runs a file of the working directory."""
    found = [each for path, name in tree.modules.items() for each in foreign(name, path.read_text())]
    assert found == []
