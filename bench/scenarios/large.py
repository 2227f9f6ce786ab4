"""Large answers: the list of 1 000 tools, a text of 1 MiB, and a resource of that size."""

from __future__ import annotations

import json

import load
import servers
from rounds import interleaved
from stage import Stage
from table import Row

MANY = 1000
TEXT = "0123456789abcdef" * (1 << 16)
READ = {"method": "resources/read", "params": {"uri": "bench://text"}}
REACH = 3
REACH_ECHO = 1.6
READERS = 4
"""Sessions that take turns: each may read a hundred times per second."""


async def measure(stage: Stage) -> list[Row]:
    """Run the rounds. Leaves the tools registered."""
    http, amount = stage.http, stage.amount
    registered = await stage.editor.lua(
        "BENCH.register_many(...) return #require('mcp-tools.registry').list()", MANY
    )
    assert registered is not None
    listing: dict[str, object] = {"method": "tools/list", "params": {}}
    tools = await servers.with_sessions(http, stage.bridge, listing, '"nvim_many_', size=100_000)
    text = await servers.ask(http, tools)
    names = {tool["name"] for tool in json.loads(text)["result"]["tools"]}
    if len(names) < MANY:  # more on the next page
        assert "nextCursor" in json.loads(text)["result"], len(names)
    async with http.put(f"{stage.floor.url}/fixed", data=text):
        pass
    echo = servers.call("nvim_echo", TEXT)
    endpoints = {
        "list": tools,
        "bare list": servers.plain(stage.floor, "/fixed", listing, '"nvim_many_', 100_000),
        "echo": await servers.with_sessions(http, stage.bridge, echo, '"text":', size=1 << 20),
        "read": await servers.with_sessions(
            http, stage.bridge, READ, '"contents":', count=READERS, size=1 << 20
        ),
        "bare echo": servers.plain(stage.floor, "/echo", servers.call("echo", TEXT), '"text":', 1 << 20),
    }
    for endpoint in endpoints.values():
        await servers.ask(http, endpoint)
    measures = {name: lambda e=e: load.run(e, amount.seconds) for name, e in endpoints.items()}
    rounds = await interleaved(measures, amount.rounds)

    def row(figure: str, name: str, other: str, reach: float = REACH) -> Row:
        ratio = rounds.ratio(name, other, "p50")
        own, bare = rounds.median(name, "p50"), rounds.median(other, "p50")
        value = f"{ratio:.2f} × bare ({own:.2f} ms; bare {bare:.2f})"
        return Row(figure, value, f"≤ {reach:g} × bare aiohttp", ratio <= reach)

    return [
        row(f"tools/list with {MANY} tools ({len(text) // 1000} kB), p50", "list", "bare list"),
        row("1 MiB text result (echoed), p50", "echo", "bare echo", REACH_ECHO),
        row("1 MiB resource read, p50 (bare: echo)", "read", "bare echo"),
    ]
