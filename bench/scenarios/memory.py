"""Growth of memory of the bridge and of Lua over many calls."""

from __future__ import annotations

import load
import servers
from stage import Stage
from table import Row

CLIENTS = 16
LOOKS = 5
"""Measurements of Lua's heap, a second of calls apart: it keeps 1000 to 2000 ids of calls, and is smallest
after it has dropped the older ones."""
BRIDGE_MB, LUA_KIB = 5.0, 64.0
TEXT = "a line of text, as tools are given it"


async def measure(stage: Stage) -> list[Row]:
    """Load until both counts are reached; memory at the first against memory at the second."""
    endpoint = await servers.with_sessions(
        stage.http, stage.bridge, servers.call("nvim_echo", TEXT), TEXT, CLIENTS
    )
    first, second = stage.amount.calls
    done = 0

    async def until(count: int) -> tuple[float, float]:
        nonlocal done
        while done < count:
            done += (await load.run(endpoint, 1 if count - done < 10_000 else 2, CLIENTS)).count
        resident, heaps = stage.bridge.resident(), []
        for _ in range(LOOKS):
            heaps.append(float(await stage.editor.lua("return BENCH.heap()")))
            done += (await load.run(endpoint, 1, CLIENTS)).count
        return resident, min(heaps)

    begin, end = await until(first), await until(second)
    grown, lua = end[0] - begin[0], end[1] - begin[1]
    value = f"bridge {grown:+.1f} MB (to {end[0]:.0f}), Lua {lua:+.0f} KiB (to {end[1]:.0f})"
    met = grown <= BRIDGE_MB and lua <= LUA_KIB
    reach = f"bridge ≤ {BRIDGE_MB:g} MB, Lua flat (≤ {LUA_KIB:g} KiB)"
    return [Row(f"memory, {first} → {second} calls", value, reach, met)]
