"""The tasks: a script for each agent, which knows only the request, and a check of the result."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from agent_tasks import project as p
from agent_tasks.arms import Arm, Ours, Skilled, places

Tree = dict[str, str]
Changes = dict[str, str | None]
"""Paths with their new texts, None for a removed file."""


@dataclass(frozen=True)
class Task:
    """One request. `right` checks the answer; the files must differ by `changes`, unless that is None."""

    number: int
    request: str
    skilled: Callable[[Skilled], Any]
    ours: Callable[[Ours], Awaitable[Any]]
    right: Callable[[Any, Arm], bool] = lambda answer, _: not str(answer).startswith("Error")
    changes: Callable[[Tree], Changes] | None = lambda _: {}


def number_of(pattern: str, text: str) -> int:
    """The last number that a pattern finds in an answer."""
    return int(re.findall(pattern, text, re.MULTILINE)[-1])


def words(*expected: str) -> Callable[[Any, Arm], bool]:
    """Whether an answer has all of these texts."""
    return lambda answer, _: all(word in str(answer) for word in expected)


def replaced(path: str, *pairs: tuple[str, str]) -> Callable[[Tree], Changes]:
    """A file with replaced texts."""

    def changes(texts: Tree) -> Changes:
        text = texts[path]
        for old, new in pairs:
            text = text.replace(old, new)
        return {path: text}

    return changes


# Tasks for any project --------------------------------------------------------------------------------------


def outline(path: str) -> Task:
    """List the definitions of a large file."""

    def right(answer: str, arm: Arm) -> bool:
        names = re.findall(r"^ *(?:class|def) (\w+)", (arm.root / path).read_text(), re.MULTILINE)
        return all(re.search(rf"\b{name}\b", answer) for name in names)

    pattern = r"^\s*(async def|def|class) "
    return Task(
        1,
        "outline of a large file",
        lambda s: s.grep(pattern, path),
        lambda o: o.call("symbol_overview", path=path),
        right,
    )


def body(path: str, symbol: str) -> Task:
    """Read one of several methods with the same name, in a class whose file is known."""
    name = symbol.rpartition("/")[2]

    def skilled(s: Skilled) -> str:
        return s.read(path, number_of(rf"{path}:(\d+)", s.grep(rf"def {name}\b")), 40)

    def right(answer: str, arm: Arm) -> bool:
        text = (arm.root / path).read_text().rpartition(f"    def {name}(")[2].partition("\n    def ")[0]
        return all(line.strip() in answer for line in text.splitlines())

    title = "body of one of several methods"
    return Task(2, title, skilled, lambda o: o.call("file_read", path=path, symbol=symbol), right)


def users(symbol: str, skilled: Callable[[Skilled], Any], pattern: str) -> Task:
    """Find the uses of a method with a common name."""

    async def ours(o: Ours) -> set[tuple[str, int]]:
        return places(await o.call("symbol_references", symbol=symbol))

    def right(answer: set[tuple[str, int]], arm: Arm) -> bool:
        rows = [
            (path, n, row)
            for path, text in p.tree(arm.root).items()
            for n, row in enumerate(text.split("\n"), 1)
        ]
        return answer == {(path, n) for path, n, row in rows if re.search(pattern, row)}

    return Task(3, "true users of a common name", skilled, ours, right)


def below(base: str, expected: Callable[[Arm], set[str]]) -> Task:
    """Find all classes below a base."""

    def skilled(s: Skilled) -> set[str]:
        known, level = {base}, {base}
        while level:
            names = "|".join(sorted(level))
            found = s.grep(rf"^class \w+\(.*\b({names})\b|import .*\b({names}) as \w+", glob="*.py")
            level = set(re.findall(r":class (\w+)|import .* as (\w+)$", found, re.MULTILINE))
            level = {name for pair in level for name in pair if name} - known
            known |= level
        return {name for name in known if name not in {base, "Base"}}

    async def ours(o: Ours) -> set[str]:
        return set(re.findall(r"\bclass (\w+)", await o.call("symbol_implementations", symbol=base)))

    return Task(8, "classes below a base", skilled, ours, lambda answer, arm: answer == expected(arm))


def rename(
    symbol: str, new: str, skilled: Callable[[Skilled], Any], changes: Callable[[Tree], Changes]
) -> Task:
    """Rename a method."""

    async def ours(o: Ours) -> str:
        answer = ""
        while not answer or "is still indexing" in answer:
            answer = await o.call("symbol_rename", symbol=symbol, new_name=new)
        return answer

    return Task(9, "rename a method", skilled, ours, changes=changes)


def move(old: str, new: str, edits: str, find: str, check: str) -> Task:
    """Move a module; the sed `edits` change the results of `find`, and then the command `check` succeeds."""

    def skilled(s: Skilled) -> str:
        paths = " ".join(sorted({row.split(":")[0] for row in s.grep(find, glob="*.py").splitlines()}))
        s.bash(f"mv {old} {new} && sed -i '{edits}' {paths}", "Move the module and change its imports")
        s.bash("basedpyright --level error | grep -i import | tail -5", "Check the imports")
        return s.bash(f"rg -n '{find}' -g '*.py' || echo none", "Look for old imports")

    async def ours(o: Ours) -> str:
        return await o.call("file_move", path=old, new_path=new)

    def right(_: Any, arm: Arm) -> bool:
        return arm.succeeds(f"{check} && ! rg -q '{find}' -g '*.py' && ! test -e {old} && test -e {new}")

    return Task(10, "move a module", skilled, ours, right, None)


def one_line(path: str, old: str, new: str) -> Task:
    """Change one line."""

    def skilled(s: Skilled) -> str:
        s.read(path, max(number_of(r"^(\d+):", s.grep(re.escape(old), path)) - 3, 1), 6)
        return s.edit(path, old, new)

    async def ours(o: Ours) -> str:
        return await o.call("file_edit", edits=[{"path": path, "old_text": old, "new_text": new}])

    return Task(12, "change one line", skilled, ours, changes=replaced(path, (old, new)))


def everywhere(old: str, new: str, count: int) -> Task:
    """Replace a text in many files."""

    def skilled(s: Skilled) -> str:
        command = f"n=$(rg -lF '{old}' | wc -l); rg -lF '{old}' | xargs sed -i 's/{old}/{new}/'; echo $n / "
        return s.bash(command + f"$(rg -lF '{new}' | wc -l) files changed", "Replace the text in all files")

    async def ours(o: Ours) -> str:
        return await o.call("file_replace", query=old, replacement=new, expected_count=count)

    def changes(texts: Tree) -> Changes:
        return {path: text.replace(old, new) for path, text in texts.items()}

    return Task(15, "text in many files", skilled, ours, changes=changes)


def failing(path: str | None, *expected: str) -> Task:
    """Find the failing test, with location and reason."""
    command = f"python -m pytest -q --tb=short -W ignore {path or ''} 2>&1 | tail -20"
    arguments = {"path": path} if path else {}
    return Task(
        18,
        "failing test",
        lambda s: s.bash(command, "Run the tests"),
        lambda o: o.call("test_run", **arguments),
        words(*expected),
    )


# Tasks for the generated project ----------------------------------------------------------------------------

LEDGER, LIMITS, BASKET = (f"shopkit/core/{name}.py" for name in ("ledger", "limits", "basket"))
STOCK, ROUNDING, LINKS = "shopkit/services/stock.py", "shopkit/util/rounding.py", "shopkit/util/links.py"
LIMIT_EDITS = [
    ("RETRIES", 3, 5),
    ("TIMEOUT", 30, 45),
    ("BATCH", 100, 250),
    ("DEPTH", 4, 6),
    ("WORKERS", 2, 8),
]
LIMIT_PAIRS = [(f"{name} = {old}", f"{name} = {new}") for name, old, new in LIMIT_EDITS]
STOCK_PAIRS = [('LEVEL: int = "none"', "LEVEL: int = 0"), ("cuont", "count"), ("len(name)", "name.title()")]
UNUSED = (
    "# Halves go to the even neighbor.\n# Nothing else does.\ndef round_half(amount: float) -> int:\n"
    '    """Return the nearest integer."""\n    return round(amount)\n\n\n'
)
TEXT_PAIRS = [
    ("README.md", "## How to install it", "## Installation"),
    ("pyproject.toml", '"1.4.0"', '"1.5.0"'),
]


def sed(pairs: list[tuple[str, str]]) -> str:
    return ";".join(f"s/{old}/{new}/" for old, new in pairs)


def in_json(pairs: list[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"old_text": old, "new_text": new} for old, new in pairs]


def users_skilled(s: Skilled) -> set[tuple[str, int]]:
    rows = s.grep(rf"\.{p.METHOD}\(").splitlines()
    return places("\n".join(row for row in rows if "ledger." in row.split(":", 2)[2]))


def overrides_skilled(s: Skilled) -> set[str]:
    known, level, files = set(), {"Rule", r"\w*Rule"}, set()
    while level:
        found = s.grep(rf"^class \w+\(.*\b({'|'.join(sorted(level))})\b")
        rows = re.findall(r"^(\S+):\d+:class (\w+)", found, re.MULTILINE)
        level = {name for _, name in rows} - known
        known |= level
        files |= {path for path, name in rows if name in level}
    found = s.bash(f"rg -n '^class |def price\\(' {' '.join(sorted(files))}", "Find the overrides of price")
    return {name for name in re.findall(r":class (\w+).*\n.*def price", found) if name in known}


async def overrides_ours(o: Ours) -> set[str]:
    found = places(await o.call("symbol_implementations", symbol="Rule/price"))
    texts = [(o.root / path).read_text().splitlines()[:line] for path, line in found]
    return {re.findall(r"^class (\w+)", "\n".join(lines), re.MULTILINE)[-1] for lines in texts}


def callers_skilled(s: Skilled) -> set[str]:
    level, result = {"apply_discount"}, set[str]()
    for _ in range(2):
        rows = [row.split(":", 2) for row in s.grep(rf"\b({'|'.join(sorted(level))})\(").splitlines()]
        paths = " ".join(sorted({path for path, _, text in rows if not text.startswith("def ")}))
        found = s.bash(f"rg -n '^def ' {paths}", "Find the functions around the calls")
        level = set(re.findall(r":def (\w+)", found))
        result |= level
    return result


async def callers_ours(o: Ours) -> set[str]:
    text = await o.call("symbol_callers", symbol="apply_discount", depth=2)
    return set(re.findall(r": (\w+)", text))


def type_skilled(s: Skilled) -> str:
    copy = "shopkit/services/_t.py"
    insert = rf"sed '/totals = /a\        reveal_type(totals)' {p.TILL} > {copy}"
    command = f"{insert} && basedpyright {copy} | grep 'Type of'; rm {copy}"
    return s.bash(command, "Ask basedpyright for the type of totals")


def library_skilled(s: Skilled) -> str:
    show = "print(inspect.getsourcefile(f)); print(inspect.getsource(f)[:500])"
    code = f"import inspect, yarl; f = yarl.URL.with_port; {show}"
    return s.bash(f'python -c "{code}"', "Show the definition and docs of with_port")


def rename_skilled(s: Skilled) -> str:
    rows = s.grep(rf"\.{p.METHOD}\(|def {p.METHOD}\(|class (Ledger|Journal)").splitlines()
    wanted: dict[str, list[str]] = {}
    for path, line, text in (row.split(":", 2) for row in rows):
        if "ledger." in text or (path == LEDGER and "def " in text):
            wanted.setdefault(path, []).append(f"{line}s/{p.METHOD}/{p.NEW_METHOD}/")
    commands = [f"sed -i '{';'.join(edits)}' {path}" for path, edits in wanted.items()]
    s.bash("\n".join(commands), "Rename the uses line by line")
    s.bash("basedpyright shopkit | tail -3", "Check the types")
    return s.bash(f"rg -c 'ledger\\.{p.METHOD}|{p.NEW_METHOD}'", "Count what is left and what is new")


def renamed(texts: Tree) -> Changes:
    old, new = f"ledger.{p.METHOD}(", f"ledger.{p.NEW_METHOD}("
    found: Changes = {path: text.replace(old, new) for path, text in texts.items()}
    return found | replaced(LEDGER, (f"def {p.METHOD}", f"def {p.NEW_METHOD}"))(texts)


def delete_skilled(s: Skilled) -> str:
    found = s.grep(r"\b(round_half|to_cents)\b")
    s.read(ROUNDING, number_of(r"rounding\.py:(\d+):def round_half", found) - 4, 14)
    return s.edit(ROUNDING, UNUSED, "") if found.count("round_half") == 1 else "Error"


async def delete_ours(o: Ours) -> str:
    used = await o.call("symbol_delete", symbol="to_cents")
    return await o.call("symbol_delete", symbol="round_half") if "not deleted" in used else "Error"


def rewrite_skilled(s: Skilled) -> str:
    s.read(p.TAX, number_of(r"^(\d+):", s.grep("def assess", p.TAX)), 58)
    return s.edit(p.TAX, p.LONG, p.SHORT)


def edits_skilled(s: Skilled) -> str:
    names = "|".join(name for name, _, _ in LIMIT_EDITS)
    s.grep(rf"\b({names})\b", LIMITS)
    s.bash(
        f"sed -i '{sed([('^' + old, new) for old, new in LIMIT_PAIRS])}' {LIMITS}", "Change the five limits"
    )
    return s.grep(rf"^({names}) = ", LIMITS)


def types_skilled(s: Skilled) -> str:
    s.bash(f"basedpyright {STOCK}", "Check the types")
    s.read(STOCK, 1, 16)
    s.bash(f"sed -i '{sed(STOCK_PAIRS)}' {STOCK}", "Fix the three errors")
    return s.bash(f"basedpyright {STOCK} | tail -1", "Check again")


async def types_ours(o: Ours) -> str:
    if 'LEVEL: int = "none"' not in await o.call("diagnostics_list", path=STOCK):
        await o.call("file_read", path=STOCK)  # the text to replace
    return await o.call("file_edit", path=STOCK, edits=in_json(STOCK_PAIRS))


def unsaved_skilled(s: Skilled) -> str:
    found = s.read(p.TILL, 9, 2)
    s.edit(p.TILL, "limit = 500", "limit = 950")
    return found


async def unsaved_ours(o: Ours) -> str:
    found = await o.call("file_read", path=p.TILL, symbol="Till/limit")
    await o.call("file_edit", edits=[{"path": p.TILL, "old_text": "limit = 900", "new_text": "limit = 950"}])
    lines = await o.editor.lua("return vim.api.nvim_buf_get_lines(vim.fn.bufnr('till.py'), 0, -1, false)")
    return found + "\n".join(lines)


def value_skilled(s: Skilled) -> str:
    s.read(BASKET, 15, 5)
    stop = f'-c "b $PWD/{BASKET}:19" -c c -c "p scale" -c q'
    return s.bash(f"python -m pdb {stop} scripts/totals.py", "Stop there and print scale")


async def value_ours(o: Ours) -> str:
    point = {"path": BASKET, "line": 19}
    return await o.call("debug_run", program="scripts/totals.py", breakpoints=[point], expressions=["scale"])


def texts_skilled(s: Skilled) -> str:
    edits = " && ".join(f"sed -i 's/{old}/{new}/' {path}" for path, old, new in TEXT_PAIRS)
    show = "grep -n Install README.md && grep -n ^version pyproject.toml"
    return s.bash(f"{edits} && {show}", "Change heading and version")


async def texts_ours(o: Ours) -> str:
    edits = [{"path": path, "old_text": old, "new_text": new} for path, old, new in TEXT_PAIRS]
    return await o.call("file_edit", edits=edits)


def texts_changed(texts: Tree) -> Changes:
    return {path: texts[path].replace(old, new) for path, old, new in TEXT_PAIRS}


def equals(expected: set[str]) -> Callable[[Any, Arm], bool]:
    return lambda answer, _: answer == expected


OLD, NEW = "shopkit/util/parse.py", "shopkit/core/parsing.py"
IMPORTS = (
    "from shopkit.services import billing as b, till as t; assert t.Till().open('2') + b.bill(['1']) == 450"
)
MOVE = (
    r"s/shopkit\.util\.parse\b/shopkit.core.parsing/;s/\bparse\.parse_/parsing.parse_/g;"
    r"s/from shopkit\.util import parse$/from shopkit.core import parsing/"
)
TASKS = [
    outline(p.TAX),
    body(LEDGER, "Ledger/reconcile"),
    users(f"Ledger/{p.METHOD}", users_skilled, rf"\bledger\.{p.METHOD}\("),
    Task(4, "overrides of an abstract method", overrides_skilled, overrides_ours, equals(set(p.RULES))),
    Task(5, "callers of callers", callers_skilled, callers_ours, equals(set(p.CALLERS))),
    Task(
        6,
        "inferred type",
        type_skilled,
        lambda o: o.call("symbol_info", path=p.TILL, line=19, symbol="totals"),
        words("dict[str, Decimal]"),
    ),
    Task(
        7,
        "library: definition, docs",
        library_skilled,
        lambda o: o.call("symbol_info", path=LINKS, line=8, symbol="with_port"),
        words("_url.py", "with_port", "Return a new URL with port replaced."),
    ),
    below("Handler", lambda _: set(p.HANDLERS)),
    rename(f"Ledger/{p.METHOD}", p.NEW_METHOD, rename_skilled, renamed),
    move(OLD, NEW, MOVE, r"util\.parse\b|util import .*\bparse\b", f'python -c "{IMPORTS}"'),
    Task(11, "delete if unused", delete_skilled, delete_ours, changes=replaced(ROUNDING, (UNUSED, ""))),
    one_line(BASKET, "net = sum(self.prices)", "net = sum(self.prices, 0)"),
    Task(
        13,
        "rewrite a long body",
        rewrite_skilled,
        lambda o: o.call("symbol_replace", path=p.TAX, symbol="Schedule/assess", definition=p.SHORT),
        changes=replaced(p.TAX, (p.LONG, p.SHORT)),
    ),
    Task(
        14,
        "five edits in a file",
        edits_skilled,
        lambda o: o.call("file_edit", path=LIMITS, edits=in_json(LIMIT_PAIRS)),
        changes=replaced(LIMITS, *LIMIT_PAIRS),
    ),
    everywhere(p.YEAR, p.YEAR.replace("4", "5"), p.HEADERS),
    Task(16, "fix three type errors", types_skilled, types_ours, changes=replaced(STOCK, *STOCK_PAIRS)),
    failing(None, "test_price_of_two", ":15", "120 == 119"),
    Task(19, "value only running shows", value_skilled, value_ours, words("114")),
    Task(20, "control: md, toml", texts_skilled, texts_ours, changes=texts_changed),
    Task(17, "unsaved file", unsaved_skilled, unsaved_ours, words("900  # agreed", "950  # agreed with Ann")),
]
"""The last one leaves an unsaved file."""
