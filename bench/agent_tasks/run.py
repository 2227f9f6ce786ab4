"""Runs the tasks in a project and reports bytes and correctness of both agents."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import servers
from load import BenchError
from peers.mcp_client import language_server, over_http
from rounds import FULL
from stage import Stage
from table import Row

from agent_tasks import project, real
from agent_tasks.arms import ENV, Arm, Ours, Skilled
from agent_tasks.tasks import TASKS, Task, Tree
from tests.support import nvim

ROOT = Path(__file__).resolve().parents[2]
REPORT = ROOT / "bench" / "AGENT_TASKS.md"
CONTROLS, FREE = {12, 15, 20}, {17}
WIN, CONTROL, FAR = 0.45, 1.2, 0.2
"""Limits of our bytes ÷ those of the skilled agent, which cannot see the unsaved text of task 17."""
WARM_SECONDS = 60
# Bytes of the skilled agent in an earlier measurement, with other scripts on a similar project.
P1 = [
    7592,
    1667,
    6475,
    2162,
    1540,
    404,
    822,
    1242,
    9006,
    955,
    1230,
    926,
    5869,
    936,
    303,
    1474,
    455,
    678,
    611,
    354,
]
KNOWN = {
    "×1": dict(enumerate(P1, 1)),
    "×10": dict(enumerate(P1, 1)) | {3: 10426, 4: 4692, 8: 1797, 9: 12963},
    "werkzeug": {1: 2283, 2: 2345, 3: 12278, 8: 4608, 9: 13403, 10: 1954, 12: 1180, 15: 293, 18: 882},
}
INIT = f"""
vim.cmd('filetype on')
vim.opt.runtimepath:prepend([[{ROOT / "tests" / "lua" / "support" / "dap_client"}]])
vim.api.nvim_create_autocmd('FileType', {{
  pattern = 'python',
  callback = function(args)
    local cmd = vim.json.decode([==[{json.dumps(language_server())}]==])
    vim.lsp.start({{ name = 'basedpyright', cmd = cmd, root_dir = vim.fn.getcwd() }}, {{ bufnr = args.buf }})
  end,
}})
require('mcp-tools').setup({{
  bridge = {{ autostart = false }},
  approval = {{ rule = function() return 'allow' end }},
}})
local python = [[{sys.executable}]]
require('dap').adapters.python = {{
  type = 'executable',
  command = python,
  args = {{ '-m', 'debugpy.adapter' }},
}}
"""


@dataclass
class Cell:
    """The result of one agent at one task: correctness, calls, bytes in and out."""

    right: bool
    calls: int
    bytes: int
    ms: float


@dataclass
class Line:
    """Both agents at one task."""

    task: Task
    skilled: Cell
    ours: Cell
    known: int
    """Bytes of the skilled agent in an earlier measurement."""

    @property
    def ratio(self) -> float:
        """Our bytes ÷ the skilled agent's."""
        return self.ours.bytes / self.skilled.bytes

    @property
    def limit(self) -> float:
        """The maximum ratio."""
        return math.inf if self.task.number in FREE else CONTROL if self.task.number in CONTROLS else WIN

    @property
    def drift(self) -> float:
        """The difference of the skilled agent to the earlier measurement."""
        return self.skilled.bytes / self.known - 1

    def cells(self) -> list[str]:
        """The row of the report."""
        yes, s, o = ("**no**", "yes"), self.skilled, self.ours
        cells = [
            str(self.task.number),
            self.task.request,
            yes[s.right],
            yes[o.right],
            f"{s.calls}, {s.bytes}",
        ]
        cells += [
            f"{self.known} ({self.drift:+.0%})",
            f"{o.calls}, {o.bytes}",
            f"{o.ms:.0f}",
            f"{self.ratio:.2f}",
        ]
        limit = "" if self.limit == math.inf else f"{self.limit:g}"
        return [*cells, limit, yes[o.right and self.ratio <= self.limit]]


async def attempt(task: Task, arm: Arm) -> Cell:
    """Runs one agent at one task and checks its answer and the files."""
    before = project.tree(arm.root)
    arm.begin()
    begun = time.perf_counter()
    answer = await task.ours(arm) if isinstance(arm, Ours) else task.skilled(arm)
    ms = (time.perf_counter() - begun) * 1000
    right = task.right(answer, arm)
    if task.changes:
        after = before | task.changes(before)
        right &= project.tree(arm.root) == {path: text for path, text in after.items() if text is not None}
    if isinstance(arm, Ours) and not right:
        print(f"task {task.number} is wrong:", *arm.log, sep="\n", file=sys.stderr)
    return Cell(right, arm.calls, arm.bytes, ms)


@contextlib.asynccontextmanager
async def ours(stage: Stage, folder: Path, home: nvim.Home) -> AsyncIterator[Ours]:
    """Our agent, after its language server has read the project."""
    async with contextlib.AsyncExitStack() as stack:
        options = {"init_lua": INIT, "cwd": folder, "env": ENV}
        editor = await stack.enter_async_context(nvim.running(stage.program, home, **options))
        bridge = await stack.enter_async_context(servers.bridge(editor.socket, home, "ours"))
        asker = await stack.enter_async_context(over_http(f"{bridge.url}/mcp", bridge.headers))
        agent = Ours(folder, asker, editor)
        begun = time.perf_counter()
        names = ["Ledger/close", "Map/bind"]
        while not any(
            ["(by basedpyright)" in await agent.call("symbol_references", symbol=name) for name in names]
        ):
            if time.perf_counter() - begun > WARM_SECONDS:
                raise BenchError("agent_tasks: the language server does not answer")
            await asyncio.sleep(0.2)
        yield agent


async def compare(stage: Stage, name: str, files: Tree, tasks: list[Task]) -> list[Line]:
    """Runs both agents at all tasks, each in a separate project."""
    place = stage.home.path.parent / f"x{len(files)}"
    home = nvim.Home(place / "editor")
    for folder in (home.path, place / "skilled", place / "ours"):
        folder.mkdir(parents=True)
    for folder in (place / "skilled", place / "ours"):
        project.write(folder, files)
    lines, known = [], KNOWN[name]
    async with ours(stage, place / "ours", home) as mine:
        skilled = Skilled(place / "skilled")
        for task in tasks:
            if task.number in FREE:
                await mine.editor.lua(
                    "vim.cmd.edit(...) vim.cmd('%s/500/900  # agreed with Ann/')", project.TILL
                )
            lines.append(
                Line(task, await attempt(task, skilled), await attempt(task, mine), known[task.number])
            )
    return sorted(lines, key=lambda line: line.task.number)


def mean(lines: list[Line]) -> float:
    """The geometric mean of the ratios of all tasks except controls."""
    logs = [math.log(line.ratio) for line in lines if line.limit == WIN]
    return math.exp(sum(logs) / len(logs))


HEAD = """# Tasks of agents

`bench/run.py --only agent_tasks` wrote this. Two scripted agents do the same tasks (bench/agent_tasks): a
skilled one with ripgrep, sed, ranged reads, edits, pytest and basedpyright, and one with our tools. Bytes are
those of the calls, name and arguments as JSON, and of the answers' texts. Our limit is 0.45 of the skilled
agent's bytes, and 1.2 in the controls 12, 15 and 20; none in 17, where the skilled agent cannot see the
unsaved text. "Earlier" are its bytes in an independent measurement with other scripts. Means are geometric.
"""
COLUMNS = ["#", "task", "skilled right", "ours right", "skilled: calls, bytes", "earlier"]
COLUMNS += ["ours: calls, bytes", "ms", "ratio", "limit", "met"]


def markdown(tables: dict[str, list[Line]]) -> str:
    """The contents of AGENT_TASKS.md."""
    out = [HEAD]
    for name, lines in tables.items():
        table = [COLUMNS, ["---"] * len(COLUMNS), *(line.cells() for line in lines)]
        out += [f"## {name}\n", *(f"| {' | '.join(cells)} |" for cells in table)]
        skilled, mine = (sum(getattr(line, who).bytes for line in lines) for who in ("skilled", "ours"))
        out += [f"\nBytes: skilled {skilled}, ours {mine}. Mean ratio with limit {WIN}: {mean(lines):.2f}.\n"]
    return "\n".join(out)


def rows(name: str, lines: list[Line]) -> list[Row]:
    """The rows of the benchmark table."""
    right = sum(line.ours.right for line in lines)
    over = [f"{line.task.number} ({line.ratio:.2f})" for line in lines if line.ratio > line.limit]
    far = [f"{line.task.number} ({line.drift:+.0%})" for line in lines if abs(line.drift) > FAR]
    value = f"mean {mean(lines):.2f}; over the limit: {', '.join(over) or 'none'}"
    return [
        Row(f"agent tasks {name}: right", f"{right} of {len(lines)}", "all", right == len(lines)),
        Row(f"agent tasks {name}: our bytes ÷ skilled", value, f"≤ {WIN}, controls ≤ {CONTROL}", not over),
        Row(
            f"agent tasks {name}: skilled ÷ earlier",
            f"farther: {', '.join(far) or 'none'}",
            "± 20 %",
            not far,
        ),
    ]


async def measure(stage: Stage) -> list[Row]:
    """Runs all tasks in the small, the large and the real project."""
    projects = {"×1": (project.files(1), TASKS)}
    if stage.amount == FULL:
        projects["×10"] = (project.files(10), TASKS)
        folder = stage.home.path / "real"
        folder.mkdir()
        if found := await asyncio.to_thread(real.fetch, folder):
            projects["werkzeug"] = (found, real.REAL)
    tables = {name: await compare(stage, name, *each) for name, each in projects.items()}
    if stage.amount == FULL:
        REPORT.write_text(markdown(tables))
    return [row for name, lines in tables.items() for row in rows(name, lines)]
