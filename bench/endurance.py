#!/usr/bin/env python3
"""Calls over `mcp-tools stdio` for an hour, while editor and bridge are restarted and killed in turn."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "bridge"), str(ROOT / "scripts")]

import _nvims  # noqa: E402

from tests.support import leaks, nvim, processes, restarts  # noqa: E402
from tests.support.nvim import Nvim  # noqa: E402


async def endure(program: Path, options: argparse.Namespace) -> restarts.Tally:
    """Runs it and prints progress."""
    begun = time.monotonic()
    started: list[Nvim] = []

    def report(tally: restarts.Tally) -> None:
        stdio, bridge, editor = tally.memory[-1]
        print(
            f"{(time.monotonic() - begun) / 60:5.1f} min: {tally.calls} calls, {sum(tally.failed.values())}"
            f" errors, {tally.lost} lost; MB: stdio {stdio:.1f}, bridge {bridge:.1f}, editor {editor:.1f}",
            flush=True,
        )

    with nvim.new_home() as home:

        async def spawn(**more: Any) -> Nvim:
            started.append(await nvim.start(program, home, **more))
            return started[-1]

        try:
            return await restarts.run(
                spawn, options.minutes * 60, every=options.every, pause=1 / options.rate, report=report
            )
        finally:
            for each in started:
                await each.stop()


def main() -> int:
    """Runs and reports."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--every", type=float, default=45, help="seconds between two restarts")
    parser.add_argument("--rate", type=float, default=2, help="calls a second")
    options = parser.parse_args()
    processes.ignore_alone()
    leaks.mark()
    program = Path(_nvims.read()["found"][_nvims.REQUIRED])
    tally = asyncio.run(endure(program, options))
    left = leaks.left_over(set())
    print(f"\n{tally.calls} calls: {tally.right} results, {sum(tally.failed.values())} errors")
    for text, count in tally.failed.most_common():
        print(f"  {count:5d} × {text}")
    print(f"lost {tally.lost}, answered twice {tally.twice}, wrong {len(tally.wrong)} {tally.wrong[:3]}")
    print("turns:", dict(tally.turns))
    if tally.memory:
        third = max(1, len(tally.memory) // 3)
        for index, name in enumerate(("stdio", "bridge", "editor")):
            early = sum(each[index] for each in tally.memory[:third]) / third
            late = sum(each[index] for each in tally.memory[-third:]) / third
            print(f"memory of {name}: {early:.1f} MB in the first third, {late:.1f} in the last")
    print(f"processes left: {len(left)}", *left.values(), sep="\n  " if left else "")
    return 1 if tally.lost or tally.twice or tally.wrong or left else 0


if __name__ == "__main__":
    sys.exit(main())
