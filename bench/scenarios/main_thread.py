"""The time of one call on Neovim's main thread, with results up to 16 KB."""

from __future__ import annotations

from statistics import median

import load
import servers
from stage import Stage
from table import Row

P50 = 60  # µs
P99 = 1.5  # multiple of the time of vim.json for the largest result


async def measure(stage: Stage) -> list[Row]:
    """Load from 4 clients with the clock in."""
    message = servers.call("nvim_shapes", "")
    endpoint = await servers.with_sessions(stage.http, stage.bridge, message, '"content":', 4)
    await load.run(endpoint, 1, 4)
    found, encoder = [], []
    for _ in range(stage.amount.rounds):
        await stage.editor.lua("BENCH.clock_on()")
        await load.run(endpoint, stage.amount.seconds, 4)
        found.append(await stage.editor.lua("return BENCH.clock_off()"))
        encoder.append(await stage.editor.lua("return BENCH.encoder()"))
    p50, p99 = (median(one[name] for one in found) for name in ("p50", "p99"))
    alone = median(encoder)
    ratio = median(one["p99"] / bare for one, bare in zip(found, encoder, strict=True))
    value = f"p50 {p50:.0f} µs, p99 {ratio:.2f} × vim.json.encode ({p99:.0f} µs; vim.json {alone:.0f})"
    reach = f"≤ {P50} µs, ≤ {P99:g} × vim.json.encode of the largest"
    return [Row("main thread per sync call, results ≤ 16 KB", value, reach, p50 <= P50 and ratio <= P99)]
