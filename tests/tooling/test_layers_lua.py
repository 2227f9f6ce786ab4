"""The layers of the Lua code: what every file may require.

A require inside a function, `package.loaded[…]` and a module name in a table of strings count as well.
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
"""From the top down: a file may require what is listed below it. A name with a slash is a directory. Files of
one directory may require each other; different names on one line may not."""

EDITOR_LAYERS = (
    "dap/ language_server/",
    "agents/ context/ lookup/ runner/ symbol/",
    "diagnostics/",
    "lsp/",
    "search/",
    "edit/ git/ plugins/ quickfix/ shell/ treesitter/ user/",
    "result/ review/",
    "execute watch",
    "buffer/",
    "arguments background process/ symbol_tree text/",
    "position",
)
"""The same for the parts of editor/."""

DEFINITIONS = "tools/ resources/ prompts/ agents/known/"
"""One definition a file, loaded by name (loading/bundled, agents/definitions), required by no other file."""

KNOWN_AGENTS = "agents/known/"

DEFINITIONS_MAY = "init editor/ instances/ privacy/ files/ log content errors util/"
"""What definitions may require."""

BY_NAME = {"loading/bundled": "", "loading/init": "loading/ext loading/python", "agents/definitions": ""}
"""Files that compute the name of a module → what they load in this way, besides definitions. In other files a
name that ends in a dot means the whole directory."""

TOKEN = re.compile(
    r"--\[(=*)\[.*?\]\1\]|--[^\n]*|\[(=*)\[.*?\]\2\]"
    r"|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"|[A-Za-z_]\w*|\s+|.",
    re.DOTALL,
)


class Arrow(NamedTuple):
    """One mention of a module in a file; both as paths without extension below the source directory."""

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
    """The modules in a directory and the arrows between them."""

    def __init__(self, root: Path, plugin: Path | None = None) -> None:
        files = sorted(root.rglob("*.lua"))
        self.modules = {path: path.relative_to(root).with_suffix("").as_posix() for path in files}
        if plugin:
            self.modules[plugin] = "plugin"
        self.names = set(self.modules.values())
        self.unknown: list[str] = []
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
        """The modules that a string names."""
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
            self.unknown.append(f"{path}:{line}: {source} → {text}: no such module")
        return found[:1]

    def cycles(self) -> list[Arrow]:
        """The arrows that are part of a cycle."""
        below: dict[str, set[str]] = {name: set() for name in self.names}
        for arrow in self.arrows:
            below[arrow.source].add(arrow.target)
        reach = {name: reached_from(name, below) for name in below}
        return [arrow for arrow in self.arrows if arrow.source in reach[arrow.target]]


def reached_from(start: str, below: dict[str, set[str]]) -> set[str]:
    """The modules that can be reached."""
    seen: set[str] = set()
    rest = [start]
    while rest:
        rest += (new := below[rest.pop()] - seen)
        seen |= new
    return seen


def part_of(module: str) -> str:
    """The directory of a module, or the module itself if it is at the root."""
    top, slash, _ = module.partition("/")
    return KNOWN_AGENTS if module.startswith(KNOWN_AGENTS) else top + slash


def layer_of(part: str, layers: tuple[str, ...] = LAYERS) -> int | None:
    """The index of the layer, counted from the top."""
    return next((index for index, line in enumerate(layers) if part in line.split()), None)


def editor_part_of(module: str) -> str:
    """The part of editor/ that contains a module."""
    return part_of(module.removeprefix("editor/"))


def is_allowed(arrow: Arrow) -> bool:
    """Whether the source may require the target."""
    source, target = part_of(arrow.source), part_of(arrow.target)
    if target in DEFINITIONS.split():
        return source == target
    if source in DEFINITIONS.split():
        return target in DEFINITIONS_MAY.split()
    if source == target == "editor/":
        source, target = editor_part_of(arrow.source), editor_part_of(arrow.target)
        upper, lower = layer_of(source, EDITOR_LAYERS), layer_of(target, EDITOR_LAYERS)
    else:
        upper, lower = layer_of(source), layer_of(target)
    return source == target or (upper is not None and lower is not None and upper < lower)


def unplaced(tree: Tree) -> list[str]:
    """Modules of parts that are not listed."""
    return sorted(
        name
        for name in tree.names
        if (layer_of(part_of(name)) is None and part_of(name) not in DEFINITIONS.split())
        or (part_of(name) == "editor/" and layer_of(editor_part_of(name), EDITOR_LAYERS) is None)
    )


@pytest.fixture(scope="module")
def tree() -> Tree:
    return Tree(LUA, ROOT / "plugin" / "mcp-tools.lua")


def test_every_require_is_allowed(tree: Tree) -> None:
    assert [str(arrow) for arrow in tree.arrows if not is_allowed(arrow)] == []
    assert tree.unknown == []


def test_the_lists_name_every_part_and_nothing_else(tree: Tree) -> None:
    assert unplaced(tree) == []
    parts = {part_of(name) for name in tree.names}
    assert {part for line in LAYERS for part in line.split()} - parts == set()
    assert set(DEFINITIONS.split()) <= parts
    editor_parts = {editor_part_of(name) for name in tree.names if part_of(name) == "editor/"}
    assert {part for line in EDITOR_LAYERS for part in line.split()} == editor_parts


def test_modules_have_no_cycle(tree: Tree) -> None:
    assert [str(arrow) for arrow in tree.cycles()] == []


FOREIGN = re.compile(
    r"(?<!['\"])\brequire\b\s*(?:[,(]\s*(?:debug\.traceback\s*,\s*)?(?P<module>['\"][^'\"]*['\"]|[\w.]+)"
    r"|(?P<string>['\"][^'\"]*['\"]))"
)
BY_VARIABLE = {"loading/bundled", "init", "scope/listing", "registry/store", "util/optional"}
"""Files that `require` our modules by a variable, and the one that loads other modules."""


def foreign(source: str, text: str) -> list[str]:
    """The modules that a file requires and that are, or may be, neither ours nor Neovim's."""
    code = re.sub(r"--[^\n]*", "", text)
    return [
        f"{source}: {name}"
        for name in (match["module"] or match["string"] for match in FOREIGN.finditer(code))
        if not (name[1:].startswith(("mcp-tools", "vim.")) if name[0] in "'\"" else source in BY_VARIABLE)
    ]


def test_modules_of_others_are_loaded_by_one_file(tree: Tree) -> None:
    """A plain `require` of a missing module may run a file of the working directory."""
    found = [each for path, name in tree.modules.items() for each in foreign(name, path.read_text())]
    assert found == []
