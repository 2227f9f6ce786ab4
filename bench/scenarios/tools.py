"""Every read-only tool, in a project of 10 000 files with a buffer of 50 000 lines, and loading all tools.

New tools are measured automatically: bench/arguments.lua makes their arguments from the schema.
"""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from load import BenchError
from rounds import FULL
from stage import Stage
from table import Row

from tests.support import nvim, processes

HERE = Path(__file__).resolve().parents[1]
HELD_MS, FIRST_MS = 25, 50
"""For the median call, and for the first one, which loads modules. The start of one process is measured
separately (bench/held.lua): it forks the whole editor and cannot be split."""
LOAD_MS = 16
TIMES, WORST, SECONDS = 5, 5, 240
USERS = 10
"""Directories whose files use the function of the questions."""
FUNCTION = "local function step_{n}(value)\n  local double = value * 2\n  return double + {n}\nend\n\n"
PYTHON = "def step_{n}(value):\n    return value\n\n\n"
INIT = f"""
-- Otherwise Neovim starts eight Pythons and waits for each when the first Python file is opened.
vim.g.loaded_python3_provider = 0
require('mcp-tools').setup({{
  bridge = {{ autostart = false, python = [[{sys.executable}]] }},
  tools = 'all',
  approval = {{ rule = function() return 'allow' end }},
}})
dofile([[{HERE / "read_tools.lua"}]])
"""


@dataclass(frozen=True)
class Size:
    """The size of the project."""

    functions: int  # of five lines
    folders: int
    files: int  # in each


LARGE, SMALL = Size(10_000, 100, 100), Size(3_000, 10, 20)


def write(folder: Path, size: Size) -> dict[str, Any]:
    """Write the project, a repository with changes.

    Returns:
        Where its files are.
    """
    for number in range(size.folders):
        part = folder / f"part{number:03}"
        part.mkdir(parents=True)
        for other in range(size.files):
            used = "step_2500" if number < USERS else "other"
            text = f"-- part {number}, file {other}\nlocal _ = {used}({other})\n" + FUNCTION.format(n=other)
            (part / f"file{other:03}.lua").write_text(text)
    large = {
        "lua": ("large.lua", "".join(FUNCTION.format(n=n) for n in range(1, size.functions + 1))),
        "python": (
            "large.py",
            "".join(f"def step_{n}(a):\n    return a\n\n\n" for n in range(size.functions)),
        ),
        "json": ("large.json", json.dumps({"items": [{"n": n} for n in range(size.functions)]}, indent=1)),
    }
    for name, text in large.values():
        (folder / name).write_text(text)
    git = ["git", "-c", "user.name=bench", "-c", "user.email=bench@invalid", "-c", "commit.gpgsign=false"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "All of it"]):
        processes.run([*git, *command], cwd=folder, check=True)
    for number in range(min(size.folders, 50)):
        (folder / f"part{number:03}" / "file000.lua").write_text("-- changed\n")
    others = [str(path) for part in range(USERS) for path in sorted((folder / f"part{part:03}").iterdir())]
    return {kind: str(folder / name) for kind, (name, _) in large.items()} | {"others": others}


def listed(rows: list[dict[str, Any]], fields: dict[str, str]) -> str:
    """Names with their figures."""
    return ", ".join(
        f"{row['name']} " + " ".join(text.format(row[field]) for field, text in fields.items())
        for row in rows
    )


async def call_all(stage: Stage, home: nvim.Home, size: Size, times: int) -> list[dict[str, Any]]:
    """Calls every read-only tool this number of times."""
    folder = home.path / "project"
    project = await asyncio.to_thread(write, folder, size)
    async with nvim.running(stage.program, home, init_lua=INIT, cwd=folder) as editor:
        await editor.lua("READ_TOOLS.prepare(...)", project, size.functions, timeout=30_000)
        await editor.wait_for("return #vim.diagnostic.get(0) > 20000", timeout=10_000)
        await editor.lua("READ_TOOLS.start(...)", times)
        for _ in range(SECONDS):
            await asyncio.sleep(1)  # polling also uses the main thread
            found: list[dict[str, Any]] | None = await editor.lua("return READ_TOOLS.found", timeout=20_000)
            if found:
                return found
        raise BenchError(f"tools: {await editor.lua('return READ_TOOLS.at')} did not end")


def asked(found: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[str]]:
    """Accepted calls, and tools that refused every call.

    A tool may accept only one of the argument variants; one that refuses both is not measured.
    """
    taken = [row for row in found if not row.get("err", "").startswith("validation_error")]
    return taken, sorted({row["tool"] for row in found} - {row["tool"] for row in taken})


async def load_all(stage: Stage, home: nvim.Home) -> dict[str, float]:
    """Loads all definitions in a new editor."""
    async with nvim.running(stage.program, home, init_lua=INIT) as editor:
        await editor.lua("READ_TOOLS.load()")
        await asyncio.sleep(0.5)
        return await editor.wait_for("return READ_TOOLS.loaded", timeout=10_000)


async def measure(stage: Stage) -> list[Row]:
    """Calls and loads all tools."""
    whole = stage.amount == FULL
    home = nvim.Home(stage.home.path / "tools")
    home.path.mkdir()
    loads = [await load_all(stage, home) for _ in range(stage.amount.rounds)]
    found, refused = asked(await call_all(stage, home, LARGE if whole else SMALL, TIMES if whole else 1))
    for row in found:
        figures = f"{row['ms']:8.1f} ms, main thread {row['ran']:7.1f} ms, at a stretch {row['held']:5.1f} ms"
        first = f"(first call {row['first']:5.1f}; with the start of a process {row['whole']:5.1f})"
        print(f"  {row['name']:32} {figures} {first} {row.get('err', '')[:100]}", file=sys.stderr)
    stretch = sorted(found, key=lambda row: -max(row["held"], row["first"]))
    unknown = [f"{name} takes other arguments (bench/arguments.lua)" for name in refused]
    slow = sorted(found, key=lambda row: -row["ms"])[:WORST]
    held, first, loaded = stage.most(HELD_MS), stage.most(FIRST_MS), stage.most(LOAD_MS)
    met = all(row["held"] <= held and row["first"] <= first for row in found)
    late = [row["name"] for row in found if row.get("err", "").startswith("timeout")]
    loading, count = median(one["held"] for one in loads), loads[0]["count"]
    worst = listed(stretch[:WORST], {"held": "{:.1f} ms", "first": "(first call {:.1f})"})
    starts = [row["start"] for row in found if row["start"]]
    longest = max(found, key=lambda row: row["whole"])
    whole_worst = f"{longest['whole']:.1f} ms ({longest['name']})"
    figures = {"ms": "{:.0f} ms", "ran": "(main thread {:.0f})"}
    p50 = (
        f"{median(row['ms'] for row in found):.1f} ms, main thread {median(row['ran'] for row in found):.1f}"
    )
    return [
        Row(
            f"tools: main thread at a stretch, {len(found)} calls of tools that read",
            f"worst: {worst}; "
            f"the start of a process takes {median(starts or [0]):.1f} ms, with it {whole_worst}",
            f"≤ {stage.reach(HELD_MS)}, first call ≤ {FIRST_MS} ms, both without the start of one process",
            met,
        ),
        Row(
            "tools: p50 of a call",
            f"median {p50}; slowest: {listed(slow, figures)}",
            "; ".join(["all end", *(f"{name} did not" for name in late), *unknown]),
            not late and not refused,
        ),
        Row(
            "tools: loading all definitions, main thread at a stretch",
            f"{loading:.1f} ms ({count:.0f} tools in {median(one['ms'] for one in loads):.0f} ms)",
            f"≤ {stage.reach(LOAD_MS)}",
            loading <= loaded,
        ),
    ]
