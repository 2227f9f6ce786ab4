"""A call of a mounted server, compared with the same server called directly and a tool in Lua."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import load
import servers
import stage as stages
from mcp import Client, StdioServerParameters
from rounds import interleaved
from stage import Stage
from table import Row

SERVER = Path(__file__).resolve().parents[1] / "upstream.py"
TEXT = "a line of text, as tools are given it"
CALL, CALLS = 1.5, 500
START = """
local python, server = ...
local tools = require('mcp-tools')
tools.setup({ bridge = { python = python }, approval = { tools = { up__echo = 'allow' } } })
tools.start()
tools.mount('up', { command = { python, server } })
"""
READY = """
local mounts = require('mcp-tools').status().mounts
return mounts and mounts[1] and mounts[1].state == 'ready' and require('mcp-tools').endpoint()
"""
PID = "return require('mcp-tools').status().pid"


@dataclass(frozen=True)
class Direct:
    """Calls by the SDK's client; ms."""

    p50: float


async def measure(stage: Stage) -> list[Row]:
    """Calls of all three in turn, in an editor that has started its own bridge."""
    async with stages.editor(stage.program, stage.home.path.parent / "mounts") as editor:
        await editor.lua(START, sys.executable, str(SERVER))
        endpoint = await editor.wait_for(READY, timeout=20_000)
        program = servers.Program("mounts", None, endpoint["port"], endpoint["token"], 0)  # type: ignore[arg-type]
        mounted = await servers.with_sessions(stage.http, program, servers.call("up__echo", TEXT), TEXT)
        lua = await servers.with_sessions(stage.http, program, servers.call("nvim_echo", TEXT), TEXT)
        server = StdioServerParameters(command=sys.executable, args=[str(SERVER)])
        async with Client(server, mode="legacy") as client:
            await client.list_tools()
            rounds = await interleaved(
                {
                    "mounted": lambda: load.run(mounted, stage.amount.seconds),
                    "lua": lambda: load.run(lua, stage.amount.seconds),
                    "direct": lambda: call(client),
                },
                stage.amount.rounds,
            )
    ours, other, direct = (rounds.median(name, "p50") for name in ("mounted", "lua", "direct"))
    ratio = ours / (other + direct)
    return [
        Row(
            "mounted tool, sync call, p50",
            f"{ratio:.2f} × the same server called directly and a Lua tool"
            f" ({ours:.3f} ms; directly {direct:.3f}, Lua {other:.3f})",
            f"≤ {CALL:g} × both",
            ratio <= CALL,
        )
    ]


async def call(client: Any) -> Direct:
    """Calls, one after the other."""
    times = []
    for _ in range(CALLS):
        begun = time.perf_counter()
        result = await client.call_tool("echo", {"text": TEXT})
        times.append((time.perf_counter() - begun) * 1000)
        if result.content[0].text != TEXT:
            raise load.BenchError(f"another answer: {result}")
    return Direct(median(times))
