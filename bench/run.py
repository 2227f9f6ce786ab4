#!/usr/bin/env python3
"""Measures and compares: `make bench`, or bench/run.py with `--help`.

Everything runs with the default limits. A figure is the median of 5 rounds of alternating measurements.
Ratios are computed within a round: load on the machine changes them less than milliseconds.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE), str(ROOT), str(ROOT / "bridge"), str(ROOT / "scripts")]

import _nvims  # noqa: E402
import load  # noqa: E402 - neighbours
import table  # noqa: E402
from agent_tasks import run as agent_tasks  # noqa: E402
from rounds import FULL, QUICK, Amount  # noqa: E402
from scenarios import (  # noqa: E402
    calls,
    dashboard,
    edits,
    gateway,
    hooks,
    hostile,
    instructions,
    large,
    later,
    main_thread,
    memory,
    mounts,
    peers_tools,
    python_tools,
    startup,
    stdio,
    tools,
    traffic,
    typing,
)
from stage import prepare  # noqa: E402

LONG = ["instructions", "peers_tools"]
"""Not in a quick run unless they are named: valgrind takes a minute to start a bridge, and the peers
are many packages."""

# In this order: `large` leaves a thousand tools behind.
SCENARIOS = {
    "calls": calls.measure,
    "instructions": instructions.measure,
    "later": later.measure,
    "main_thread": main_thread.measure,
    "gateway": gateway.measure,
    "edits": edits.measure,
    "stdio": stdio.measure,
    "hooks": hooks.measure,
    "typing": typing.measure,
    "dashboard": dashboard.measure,
    "memory": memory.measure,
    "python_tools": python_tools.measure,
    "mounts": mounts.measure,
    "startup": startup.measure,
    "tools": tools.measure,
    "hostile": hostile.measure,
    "peers_tools": peers_tools.measure,
    "large": large.measure,
    "agent_tasks": agent_tasks.measure,
}
ASKED = ["agent_tasks"]
"""Run only when they are named: they write their own report."""


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Measure speed and memory.")
    parser.add_argument(
        "--quick", action="store_true", help="short measurements, to check that everything runs"
    )
    parser.add_argument(
        "--only",
        action="append",
        choices=[*SCENARIOS, "traffic"],
        help="run only this scenario (can be repeated)",
    )
    parser.add_argument("--nvim", type=Path, help="the Neovim to use; default: the required one of the tests")
    parser.add_argument(
        "--output", type=Path, help="where to write; default: bench/RESULTS.md for a whole run"
    )
    return parser.parse_args()


async def measure(nvim: Path, amount: Amount, wanted: list[str]) -> list[table.Row]:
    """Runs the scenarios one after the other, with `traffic`, which mostly waits, at the same time."""
    rows: list[table.Row] = []
    with tempfile.TemporaryDirectory(prefix="mcpt-") as folder:
        place = Path(folder)
        async with asyncio.TaskGroup() as group, prepare(nvim, place, amount) as stage:
            quiet = None
            if "traffic" in wanted:
                quiet = group.create_task(traffic.measure(nvim, place, amount))
            for name, scenario in SCENARIOS.items():
                if name in wanted:
                    print(f"… {name}", file=sys.stderr, flush=True)
                    rows += await scenario(stage)
            if quiet:
                print("… traffic", file=sys.stderr, flush=True)
                rows += await quiet
    return rows


def failed(faults: Sequence[BaseException]) -> int:
    """Prints what did not run."""
    for fault in faults:
        print(f"bench: {fault}", file=sys.stderr)
    return 1


def main() -> int:
    """Measures and writes the results.

    Returns:
        1 if something did not run.
    """
    options = parse()
    amount = QUICK if options.quick else FULL
    nvim = options.nvim or Path(_nvims.read()["found"][_nvims.REQUIRED])
    every = [name for name in SCENARIOS if name not in ASKED and not (options.quick and name in LONG)]
    wanted = options.only or [*every, "traffic"]
    try:
        load.wrk()
        machine, neighbours = table.describe(nvim), table.Neighbours()
        rows = asyncio.run(measure(nvim, amount, wanted))
        machine.append(f"other programs used {neighbours.share():.0f} % of the machine meanwhile")
    except BaseExceptionGroup as group:
        faults, others = group.split((load.BenchError, AssertionError))
        if others or not faults:
            raise
        return failed(faults.exceptions)
    except load.BenchError as fault:
        return failed([fault])
    print("\n".join(machine), table.terminal(rows), sep="\n\n")
    output = options.output or (None if options.quick or options.only else HERE / "RESULTS.md")
    if output:
        how = (
            f"medians of {amount.rounds} interleaved rounds, {amount.seconds} s of load each; default limits"
        )
        output.write_text(table.markdown(rows, machine, how))
    return 0


if __name__ == "__main__":
    sys.exit(main())
