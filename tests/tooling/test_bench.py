"""The benchmarks run and report every figure; no number is judged here."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.support import processes

ROOT = Path(__file__).resolve().parents[2]
FIGURES = [
    "sync call, p50, sessions",
    "sync call, p50, stateless",
    "sync call, p99, alone",
    "sync call, p99, 16 clients",
    "calls/s, 16 clients, sessions",
    "calls/s, 16 clients, stateless",
    "async tool that answers after 5 ms, p50",
    "main thread per sync call, results ≤ 16 KB",
    "main thread, what the gateway adds",
    "main thread, what a subscriber adds",
    "updates to that subscriber",
    "a key, p99, what a review",
    "a key, p99, with the dashboard",
    "memory, ",
    "Python tool, sync call",
    "Python host, start",
    "main thread, end and start of a Python host",
    "hosts that run once",
    "mounted tool, sync call",
    "stdio: what it adds",
    "stdio: start",
    "stdio: memory",
    "Neovim start-up: plugin/",
    "Neovim start-up: setup",
    "Neovim start-up: the first register()",
    "ready line after start",
    "bridge before its first client",
    "bridge after its first client",
    "tools: main thread at a stretch",
    "tools: p50 of a call",
    "tools: loading all definitions",
    "longest main-thread block with hostile input",
    "tools/list with 1000 tools",
    "1 MiB text result",
    "1 MiB resource read",
    "requests to Neovim, idle",
    "requests to Neovim, second half",
]


FLOOR = """
import asyncio, sys, tempfile
from pathlib import Path

sys.path[:0] = sys.argv[1:]
from peers import lsp, sample
from peers.questions import QUESTIONS, Answers, Project, ask


async def main(folder):
    sample.write(folder)
    async with lsp.running(folder, folder) as floor:
        project = Project(floor, folder)
        for _ in range(200):
            if (await project.references())[2]:
                break
            await asyncio.sleep(0.1)
        for question in QUESTIONS:
            answers = Answers()
            for _ in range(2):
                await ask(project, question, answers)
            if question == "diagnostics":
                await project.restore()
            print(question, answers.right, *sorted(answers.facts))


with tempfile.TemporaryDirectory() as folder:
    asyncio.run(main(Path(folder).resolve()))
"""


@pytest.mark.slow
def test_the_language_server_alone_answers_rightly() -> None:
    """What the comparison with other servers holds for right is what a real language server says."""
    done = processes.run(
        [sys.executable, "-c", FLOOR, *(str(ROOT / part) for part in ("bench", "", "bridge", "scripts"))],
        timeout=100,
        check=True,
    )
    said = [line.split()[:2] for line in done.stdout.splitlines()]
    assert said == [
        [name, "2"] for name in ("overview", "find", "references", "hover", "diagnostics", "rename")
    ]


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_every_row_is_produced(tmp_path: Path) -> None:
    """A smoke run measures every figure and writes the table, whatever the numbers are."""
    output = tmp_path / "RESULTS.md"
    command = [sys.executable, str(ROOT / "bench" / "run.py"), "--quick", "--output", str(output)]
    done = processes.run(command, timeout=170)
    assert done.returncode == 0, done.stderr
    rows = [line.strip("|").split("|") for line in output.read_text().splitlines() if line.startswith("| ")][
        1:
    ]
    found = [cells[0].strip() for cells in rows]
    assert len(found) == len(FIGURES)
    assert [figure for figure in FIGURES if not any(row.startswith(figure) for row in found)] == []
    assert [cells for cells in rows if not re.search(r"\d", cells[1])] == []
    assert {cells[3].strip() for cells in rows} <= {"met", "**not met**"}
