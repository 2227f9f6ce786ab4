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
    "approval groups registry hosts/ wire/",
    "core",
    "ui/",
    "ide/",
    "discovery/",
    "python/",
    "mounts/",
    "bridge/",
    "call/ trust/",
    "editor/",
    "registry/",
    "schema/ files/",
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
    "companion/ context/ file/ runner/ symbol/",
    "diagnostics/",
    "lsp/",
    "search/",
    "dap/ edit/ git/ help/ person/ plugins/ quickfix/ shell/ treesitter/",
    "result/ review/",
    "execute watch",
    "buffer/",
    "background position process/ text/",
)
"""The same for the parts of editor/."""

DRAWERS = "tools/ resources/ prompts/ companions/"
"""One thing, one file, loaded by name (discovery/bundled_files, ide/companions); nothing else may mention
them."""

DRAWERS_MAY = "init editor/ files/ content errors util/"
"""All that they may require: what they are made of, and of the plugin itself its public API."""

BY_NAME = {
    "discovery/bundled_files": "",
    "discovery/init": "discovery/ext discovery/python discovery/mounts",
    "ide/companions": "",
}
"""Files that put the name of a module together → what they reach so, besides drawers. In other files a name
that ends in a dot stands for the whole folder."""

ROOT_FILES = 12
"""At most so many files lie beside the folders."""

TO_CUT: set[str] = set()
"""Arrows of a cycle, or lazy without a reason, that are left. The list only gets shorter."""

TOKEN = re.compile(
    r"--\[(=*)\[.*?\]\1\]|--[^\n]*|\[(=*)\[.*?\]\2\]"
    r"|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"|[A-Za-z_]\w*|\s+|.",
    re.DOTALL,
)
OPENS, CLOSES = ("function", "if", "do", "repeat"), ("end", "until")
REASON = re.compile(r"[Ss]tart-up|by name")


class Arrow(NamedTuple):
    """One mention of a module in a file; both as paths without extension, from the folder of the sources."""

    path: Path
    line: int
    source: str
    target: str
    lazy: bool = False

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
        depth, before, line = 0, ["", "", ""], 1
        for match in TOKEN.finditer(text):
            token = match.group()
            if token[0] in "'\"":
                for target in self._targets(path, line, token[1:-1], before):
                    if target != source:
                        yield Arrow(path, line, source, target, depth > 0)
            depth += (token in OPENS) - (token in CLOSES)
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
    return top + slash


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


def says_why(arrow: Arrow) -> bool:
    """Does the line, the comment above it, or the head of the file give the reason of a lazy require?"""
    lines = arrow.path.read_text().splitlines()
    head = next((place for place, line in enumerate(lines) if not line.startswith("--")), 0)
    place = arrow.line - 1
    near = lines[place : place + 1]
    while place > 0 and lines[place - 1].lstrip().startswith("--"):
        place -= 1
        near.append(lines[place])
    return any(REASON.search(line) for line in [*near, *lines[:head]])


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
    assert set(DRAWERS.split()) - parts <= {"companions/"}
    editor_parts = {editor_part_of(name) for name in tree.names if part_of(name) == "editor/"}
    assert {part for line in EDITOR_LAYERS for part in line.split()} == editor_parts


def test_there_is_no_cycle(tree: Tree) -> None:
    """No module comes back to itself, not within a folder either."""
    assert [str(arrow) for arrow in tree.cycles() if arrow.name not in TO_CUT] == []


def test_few_files_lie_at_the_root() -> None:
    """What is not a door or a word that everyone uses lies in a folder that says its part."""
    assert len(list(LUA.glob("*.lua"))) <= ROOT_FILES


def test_a_require_inside_a_function_says_why(tree: Tree) -> None:
    """It is there for the start-up of the editor, or by name; else it only hides the graph."""
    silent = [arrow for arrow in tree.arrows if arrow.lazy and not says_why(arrow)]
    assert [str(arrow) for arrow in silent if arrow.name not in TO_CUT] == []


def test_what_is_left_to_cut_is_there(tree: Tree) -> None:
    """An arrow that is cut is taken from the list."""
    silent = [arrow for arrow in tree.arrows if arrow.lazy and not says_why(arrow)]
    assert {arrow.name for arrow in [*tree.cycles(), *silent]} == TO_CUT


FOREIGN = re.compile(
    r"(?<!['\"])\brequire\b\s*(?:,\s*|\(\s*)?(?:debug\.traceback\s*,\s*)?(?P<module>['\"][^'\"]*['\"]|[\w.]+)"
)
BY_VARIABLE = {
    "discovery/bundled_files",
    "init",
    "registry/listing",
    "registry/store",
    "util/optional",
}
"""Files that `require` a module of ours by a variable, and the one that loads those that are not ours."""


def foreign(source: str, text: str) -> list[str]:
    """The modules that a file requires and that are not ours, or may not be."""
    code = re.sub(r"--[^\n]*", "", text)
    return [
        f"{source}: {name}"
        for name in (match["module"] for match in FOREIGN.finditer(code))
        if not (name[1:].startswith("mcp-tools") if name[0] in "'\"" else source in BY_VARIABLE)
    ]


def test_modules_that_are_not_ours_are_loaded_by_one_file(tree: Tree) -> None:
    """A plain `require` of a module that is not installed runs a file of the working directory."""
    found = [each for path, name in tree.modules.items() for each in foreign(name, path.read_text())]
    assert found == []


# The checker itself -----------------------------------------------------------------------------------------


def made_up(root: Path, **files: str) -> Tree:
    """A tree of these files; `__` in a name stands for the slash."""
    for name, text in files.items():
        path = root / f"{name.replace('__', '/')}.lua"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Tree(root)


@pytest.mark.parametrize(
    "line",
    [
        "local store = require('mcp-tools.call.call')",
        'local store = require "mcp-tools.call.call"',
        "local function f() return require('mcp-tools.call.call') end",
        "local function f() return package.loaded['mcp-tools.call.call'] end",
        "local KINDS = { call = 'mcp-tools.call.call' }",
        "local function f(name) return require('mcp-tools.call.' .. name) end",
    ],
)
def test_an_arrow_that_runs_up_is_told(tmp_path: Path, line: str) -> None:
    """With file, line and arrow, however it is written."""
    comment = "--[[ require('mcp-tools.core')\n]] -- require('mcp-tools.wire')\n"
    tree = made_up(tmp_path, util__json=comment + line, call__call="return {}", core="", wire__init="")
    wrong = [str(arrow) for arrow in tree.arrows if not is_allowed(arrow)]
    assert wrong == [f"{tmp_path}/util/json.lua:3: util/json → call/call"]


def test_what_shares_a_line_is_apart(tmp_path: Path) -> None:
    """Calls and trust do not know each other; files of one folder may."""
    tree = made_up(
        tmp_path,
        call__call="require('mcp-tools.trust.gateway') require('mcp-tools.call.ctx')",
        call__ctx="require('mcp-tools.util.json')",
        trust__gateway="",
        util__json="",
    )
    wrong = [arrow for arrow in tree.arrows if not is_allowed(arrow)]
    assert [(arrow.source, arrow.target) for arrow in wrong] == [("call/call", "trust/gateway")]


def test_parts_of_the_editor_have_an_order(tmp_path: Path) -> None:
    """A buffer does not know what searches it, and parts on one line do not know each other."""
    tree = made_up(
        tmp_path,
        editor__search__init="require('mcp-tools.editor.buffer') require('mcp-tools.editor.search.names')",
        editor__search__names="",
        editor__buffer__init="require('mcp-tools.editor.search')",
        editor__symbol__init="require('mcp-tools.editor.file.move')",
        editor__file__move="",
        editor__attic="",
    )
    wrong = [(arrow.source, arrow.target) for arrow in tree.arrows if not is_allowed(arrow)]
    assert sorted(wrong) == [
        ("editor/buffer/init", "editor/search/init"),
        ("editor/symbol/init", "editor/file/move"),
    ]
    assert unplaced(tree) == ["editor/attic"]


def test_drawers_are_apart(tmp_path: Path) -> None:
    """They may require the public API and what they are made of, and nobody mentions one of them."""
    tree = made_up(
        tmp_path,
        tools__buffer__read="require('mcp-tools') require('mcp-tools.core') require('mcp-tools.editor.git')",
        prompts__review="require('mcp-tools.tools.buffer.read')",
        editor__git="require('mcp-tools.tools.buffer.read')",
        core="",
        init="",
    )
    wrong = {(arrow.source, arrow.target) for arrow in tree.arrows if not is_allowed(arrow)}
    assert wrong == {
        ("tools/buffer/read", "core"),
        ("prompts/review", "tools/buffer/read"),
        ("editor/git", "tools/buffer/read"),
    }


def test_a_cycle_is_told(tmp_path: Path) -> None:
    """Also within a folder, and when one of its arrows is inside a function."""
    tree = made_up(
        tmp_path,
        call__a="local b = require('mcp-tools.call.b')",
        call__b="local function f()\n  return require('mcp-tools.call.c')\nend",
        call__c="local a = require('mcp-tools.call.a') local d = require('mcp-tools.call.d')",
        call__d="",
    )
    assert [str(arrow) for arrow in tree.cycles()] == [
        f"{tmp_path}/call/a.lua:1: call/a → call/b",
        f"{tmp_path}/call/b.lua:2: call/b → call/c",
        f"{tmp_path}/call/c.lua:1: call/c → call/a",
    ]


@pytest.mark.parametrize(
    "line",
    [
        "local dap = require('dap')",
        'local ok, dap = pcall(require, "dap.utils")',
        "local dap = require 'dap'",
        "return require(module)",
        "xpcall(require, debug.traceback, name)",
    ],
)
def test_a_module_that_is_not_ours_is_told(line: str) -> None:
    """However it is required; ours are not."""
    assert len(foreign("util/json", f"require('mcp-tools.util.json')\n{line}")) == 1


def test_a_lazy_arrow_without_a_reason_is_told(tmp_path: Path) -> None:
    """The reason may stand on the line, above it, or at the head of the file."""
    require = "local function f()\n  {}return require('mcp-tools.util.json'){}\nend\n"
    tree = made_up(
        tmp_path,
        call__silent=require.format("", ""),
        call__line=require.format("", " -- start-up cost"),
        call__above=require.format("-- By a long way\n  -- by name\n  ", ""),
        call__head="--- Calls.\n--- Requires inside functions are start-up cost.\n" + require.format("", ""),
        util__json="",
    )
    silent = [arrow.source for arrow in tree.arrows if arrow.lazy and not says_why(arrow)]
    assert silent == ["call/silent"]


def test_what_has_no_place_is_told(tmp_path: Path) -> None:
    """A new folder, and a require of what is not there."""
    tree = made_up(tmp_path, attic__box="local x = require('mcp-tools.attic.no')", util__json="")
    assert unplaced(tree) == ["attic/box"]
    assert tree.odd == [
        f"{tmp_path}/attic/box.lua:1: attic/box → mcp-tools.attic.no: there is no such module"
    ]
