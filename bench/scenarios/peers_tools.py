"""Questions about code to our tools, Serena, cclsp and the language server alone.

Each has a copy of the same project and the same language server. They are asked in turn, and each round
starts with another one. A cell has p50 / bytes that a model reads, and the number of correct answers
(bench/peers/sample.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator

from peers import cclsp, install, lsp, ours, sample, serena
from peers.mcp_client import FailedError
from peers.questions import QUESTIONS, Answers, Peer, Project, ask
from stage import Stage
from table import Row

TIMES = 10
WARM_SECONDS = 60
SETTLE_SECONDS = 0.1
"""Pause in seconds, so that work for the last question does not delay the next one."""
OVERVIEW_MS, HOVER_MS, REFERENCES, DIAGNOSTICS_MS = 20, 15, 2, 300
BYTES = {
    "overview": 800,
    "find": 400,
    "references": 2000,
    "hover": 300,
    "diagnostics": 650,
    "rename": 800,
}
"""Maximum of our answer."""

Table = dict[str, dict[str, Answers]]  # question → who → what


async def warm(project: Project, begun: float) -> float:
    """Asks for references until they are correct.

    Returns:
        Seconds until then, or infinity.
    """
    while time.perf_counter() - begun < WARM_SECONDS:
        try:
            if (await project.references())[2]:
                return time.perf_counter() - begun
        except FailedError as error:
            if "nknown" in str(error):  # the tool does not exist
                break
        await asyncio.sleep(0.2)
    return float("inf")


@contextlib.asynccontextmanager
async def everybody(
    stage: Stage,
) -> AsyncIterator[tuple[dict[str, Project], dict[str, float], dict[str, str]]]:
    """The available servers, seconds until their first correct answer, and why others are not available."""
    place = stage.home.path / "peers"
    place.mkdir()
    missing, starts = (
        {},
        {
            "ours": lambda folder: ours.running(stage.program, folder, place),
            "floor": lambda folder: lsp.running(folder, place),
            "Serena": lambda folder: serena.running(folder, place),
            "cclsp": lambda folder: cclsp.running(folder, place),
        },
    )
    for name, get in (("Serena", install.serena), ("cclsp", install.cclsp)):
        why = await asyncio.to_thread(get)
        if why:
            missing[name] = f"cannot be had here: {why}"
            del starts[name]
    async with contextlib.AsyncExitStack() as stack:
        projects, first = {}, {}
        for name, start in starts.items():
            folder = place / f"project-{name}"
            folder.mkdir()
            sample.write(folder)
            begun = time.perf_counter()
            peer: Peer = await stack.enter_async_context(start(folder))
            projects[name] = Project(peer, folder)
            first[name] = await warm(projects[name], begun)
        yield projects, first, missing


async def compare(projects: list[Project], times: int) -> Table:
    """Asks all questions."""
    table: Table = {}
    for question in QUESTIONS:
        table[question] = {project.peer.name: Answers() for project in projects}
        for turn in range(times):
            first = turn % len(projects)
            for project in projects[first:] + projects[:first]:
                await asyncio.sleep(SETTLE_SECONDS)
                await ask(project, question, table[question][project.peer.name])
        if question == "diagnostics":
            for project in projects:
                await project.restore()
    return table


def reaches(question: str, answers: dict[str, Answers]) -> tuple[list[str], bool]:
    """The goal of ours as text, and whether it is met."""
    own, floor = answers["ours"], answers["floor"]
    found = [("all right", own.asked > 0 and own.right == own.asked)]
    if question == "overview":
        found.append((f"≤ {OVERVIEW_MS} ms", own.ms <= OVERVIEW_MS))
    elif question == "hover":
        found.append((f"≤ {HOVER_MS} ms", own.ms <= HOVER_MS))
    elif question == "references":
        found.append((f"≤ {REFERENCES} × floor", own.ms <= REFERENCES * floor.ms))
    elif question == "diagnostics":
        found.append((f"≤ floor + {DIAGNOSTICS_MS} ms", own.ms <= floor.ms + DIAGNOSTICS_MS))
    if "Serena" in answers:
        found.append(("faster than Serena", own.ms < answers["Serena"].ms))
    found.append((f"≤ {BYTES[question]} B", own.bytes <= BYTES[question]))
    words = [text if met else f"{text}: missed" for text, met in found]
    return words, all(met for _, met in found)


TITLES = {
    "overview": "overview of a file",
    "find": "find a method with its body, in one call",
    "references": "30 references in 12 files",
    "hover": "hover",
    "diagnostics": "diagnostics after an edit on disk",
    "rename": "rename in 13 files, there and back",
}


async def measure(stage: Stage) -> list[Row]:
    """Runs the comparison."""
    async with everybody(stage) as (projects, first, missing):
        table = await compare(list(projects.values()), TIMES if stage.amount.rounds > 1 else 2)
    rows = []
    for question, answers in table.items():
        words, met = reaches(question, answers)
        cells = [f"{name} {one}" for name, one in answers.items()]
        cells += [f"{name} {why}" for name, why in missing.items()]
        rows.append(Row(f"code: {TITLES[question]}, p50", "; ".join(cells), ", ".join(words), met))
        for name, one in answers.items():
            if one.right < one.asked:
                print(f"  {question}, {name}: {one.why or one.last[:200]}", file=sys.stderr)
    cells = [f"{name} {seconds:.1f} s" for name, seconds in first.items()]
    own = first["ours"] <= first.get("Serena", float("inf")) and first["ours"] < WARM_SECONDS
    return [
        *rows,
        Row("code: first right references after the start", "; ".join(cells), "no later than Serena", own),
    ]
