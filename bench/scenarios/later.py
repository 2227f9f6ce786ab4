"""An asynchronous tool that answers after 5 ms, compared with a bare RPC client."""

from __future__ import annotations

import asyncio
import time
from statistics import median

import load
import servers
from load import Sample
from rounds import interleaved
from stage import Stage
from table import Row

from tests.support.rpc import Rpc

TEXT = "answered later"
ALLOWED = 1.5  # ms
BARE = """
local channel = ...
vim.defer_fn(function() vim.rpcnotify(channel, 'later', 'answered later') end, 5)
"""


async def measure(stage: Stage) -> list[Row]:
    """Run the rounds."""
    rpc = await Rpc.connect(stage.editor.socket)
    channel = (await rpc.request("nvim_get_api_info"))[0]
    ours = await servers.with_sessions(stage.http, stage.bridge, servers.call("nvim_later", TEXT), TEXT)

    async def bare() -> Sample:
        times = []
        end = time.perf_counter() + stage.amount.seconds
        while (begun := time.perf_counter()) < end:
            asking = asyncio.ensure_future(rpc.lua(BARE, channel))
            await rpc.notifications.get()
            times.append((time.perf_counter() - begun) * 1000)
            await asking
        times.sort()
        count = len(times)
        return Sample(median(times), times[int(count * 0.99)], count / stage.amount.seconds, count)

    try:
        measures = {"ours": lambda: load.run(ours, stage.amount.seconds), "bare": bare}
        rounds = await interleaved(measures, stage.amount.rounds)
    finally:
        rpc.close()
    own, floor = rounds.median("ours", "p50"), rounds.median("bare", "p50")
    more = median(o.p50 - b.p50 for o, b in zip(rounds.samples["ours"], rounds.samples["bare"], strict=True))
    value = f"bare RPC + {more:.2f} ms ({own:.2f} ms; bare {floor:.2f})"
    return [
        Row("async tool that answers after 5 ms, p50", value, f"≤ bare RPC + {ALLOWED:g} ms", more <= ALLOWED)
    ]
