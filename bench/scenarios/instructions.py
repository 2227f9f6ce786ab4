"""User-space instructions of one tool call, counted by callgrind, independent of load on the machine."""

from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
from pathlib import Path

import load
import servers
from stage import Stage
from table import Row

from tests.support import processes

TEXT = "a line of text, as tools are given it"
FIGURE = "user-space instructions per sync call, sessions"
REACH = 1.6
WARM_UP, CALLS = 100, 400
"""Calls before callgrind counts, counted calls that are ignored, and measured calls."""
START_SECONDS = 240
"""Timeout in seconds: valgrind is slow, and fifty times slower while it counts."""


async def measure(stage: Stage) -> list[Row]:
    """Counts the floor and the bridge, each in its own process."""
    reach = f"≤ {REACH:g} × floor"
    if not shutil.which("valgrind") or not shutil.which("callgrind_control"):
        return [Row(FIGURE, "not measured: valgrind is not installed", reach, False)]
    warm_up, calls = (20, 40) if stage.amount.rounds == 1 else (WARM_UP, CALLS)
    socket, home = stage.editor.socket, stage.home
    async with servers.floor(socket, home, under("floor", home.path), START_SECONDS) as floor:
        endpoint = servers.plain(floor, "/lua", servers.call("echo", TEXT), TEXT)
        bare = await count(stage, floor, endpoint, warm_up, calls)
    async with servers.bridge(socket, home, "counted", under("counted", home.path), START_SECONDS) as bridge:
        endpoint = await servers.with_sessions(stage.http, bridge, servers.call("nvim_echo", TEXT), TEXT)
        ours = await count(stage, bridge, endpoint, warm_up, calls)
    ratio = ours / bare
    value = f"{ratio:.2f} × floor ({ours / 1000:.0f} k; floor {bare / 1000:.0f} k)"
    return [Row(FIGURE, value, reach, ratio <= REACH)]


def under(name: str, folder: Path) -> list[str]:
    """The command that counts what follows it."""
    out = folder / f"callgrind.{name}"
    return ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={out}", "--quiet"]


async def count(
    stage: Stage, program: servers.Program, endpoint: load.Endpoint, warm_up: int, calls: int
) -> float:
    """Instructions per call of a program that runs under callgrind."""
    for _ in range(warm_up):
        await servers.ask(stage.http, endpoint)
    await control(stage, program, "--instr=on")
    for _ in range(warm_up):
        await servers.ask(stage.http, endpoint)
    await dumped(stage, program)  # writes the previous counts
    for _ in range(calls):
        await servers.ask(stage.http, endpoint)
    return await dumped(stage, program) / calls


async def dumped(stage: Stage, program: servers.Program) -> int:
    """Instructions since the last call."""
    pattern = f"callgrind.{program.name}.*"
    known = set(stage.home.path.glob(pattern))
    await control(stage, program, "--dump")
    async with asyncio.timeout(60):
        while True:
            for new in set(stage.home.path.glob(pattern)) - known:
                if found := re.search(r"^totals: (\d+)", new.read_text(), re.MULTILINE):
                    return int(found[1])
            await asyncio.sleep(0.05)


async def control(stage: Stage, program: servers.Program, order: str) -> None:
    """Sends a command to callgrind, which is found by the temporary directory."""
    process = await processes.start(
        "callgrind_control",
        order,
        str(program.process.pid),
        env=stage.home.environment(),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        output = (await asyncio.wait_for(process.communicate(), 60))[0].decode(errors="replace")
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        raise load.BenchError("callgrind_control does not end") from None
    if process.returncode:
        raise load.BenchError(f"callgrind_control failed: {output.strip()[-300:]}")
