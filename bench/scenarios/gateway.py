"""The cost of the approval decision of a trusted tool on Neovim's main thread."""

from __future__ import annotations

from statistics import median

from stage import Stage
from table import Row

REACH = 30  # µs
CALLS = 2_000  # per second of load that other scenarios have


async def measure(stage: Stage) -> list[Row]:
    """The same call with the gateway and without, in turn; one of its arguments is a file of the project."""
    path = stage.home.make("cwd") / "gateway.txt"
    path.write_text("x\n")
    count = CALLS * stage.amount.seconds
    await stage.editor.lua("BENCH.gateway(200, ...)", str(path))
    found = [
        await stage.editor.lua("return BENCH.gateway(...)", count, str(path), timeout=60_000)
        for _ in range(stage.amount.rounds)
    ]
    added = median(one["with"] - one["without"] for one in found)
    both = median(one["with"] for one in found)
    value = f"p50 {added:.0f} µs of {both:.0f} µs (the call names one file)"
    return [
        Row("main thread, what the gateway adds to a trusted call", value, f"≤ {REACH} µs", added <= REACH)
    ]
