"""Rows of results and their format."""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from tests.support import processes


@dataclass(frozen=True)
class Row:
    """One figure.

    Attributes:
        figure: what was measured.
        value: the result as text.
        reach: the goal.
        met: whether it was met.
    """

    figure: str
    value: str
    reach: str
    met: bool


def describe(nvim: Path) -> list[str]:
    """The machine and the programs, a line each."""
    model = re.search(r"^model name\s*: (.*)$", read("/proc/cpuinfo"), re.MULTILINE)
    memory = re.search(r"^MemTotal:\s+(\d+) kB", read("/proc/meminfo"), re.MULTILINE)
    amount = f"{int(memory[1]) / 1024**2:.0f} GiB" if memory else "?"
    busy = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    packages = ", ".join(f"{name} {version(name)}" for name in ("mcp", "aiohttp", "msgpack"))
    editor = processes.run([nvim, "--version"]).stdout.splitlines()[0]
    return [
        f"{os.cpu_count()} × {model[1] if model else '?'}, {amount}; load before the run {busy}",
        f"{platform.system()} {platform.release().split('-')[0]} {platform.machine()}, {editor}, "
        f"Python {platform.python_version()}, {packages}; load by wrk",
    ]


def read(path: str) -> str:
    """The text of a file, or an empty one."""
    try:
        return Path(path).read_text()
    except OSError:
        return ""


class Neighbours:
    """The processor time of other programs during a measurement, which disturbs it."""

    def __init__(self) -> None:
        self._busy, self._all = _ticks()

    def share(self) -> float:
        """Percentage of all processor time since the start, without this run and its ended children."""
        busy, every = _ticks()
        own = sum(os.times()[:4]) * os.sysconf("SC_CLK_TCK")
        return max(0.0, (busy - self._busy - own) / max(1, every - self._all) * 100)


def _ticks() -> tuple[int, int]:
    """Used ticks of all processors (including steal time), and all ticks."""
    user, nice, system, idle, wait, *rest = (int(field) for field in read("/proc/stat").split()[1:9])
    return user + nice + system + sum(rest), user + nice + system + idle + wait + sum(rest)


def terminal(rows: list[Row]) -> str:
    """The table for a terminal."""
    widths = [max(len(getattr(row, name)) for row in rows) for name in ("figure", "value", "reach")]
    lines = []
    for row in rows:
        cells = (row.figure, row.value, row.reach)
        text = "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        lines.append(f"{text}  {'met' if row.met else 'NOT MET'}")
    return "\n".join(lines)


def markdown(rows: list[Row], machine: list[str], how: str) -> str:
    """The contents of RESULTS.md."""
    lines = ["# Results of `make bench`", "", *(f"- {line}" for line in machine), f"- {how}", ""]
    lines += ["| figure | value | reach | |", "|---|---|---|---|"]
    lines += [
        f"| {row.figure} | {row.value} | {row.reach} | {'met' if row.met else '**not met**'} |"
        for row in rows
    ]
    return "\n".join(lines) + "\n"
