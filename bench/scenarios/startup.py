"""Start-up: the editor, the bridge until its ready line, its memory and processor time."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from dataclasses import dataclass
from statistics import median

import load
import servers
from rounds import interleaved
from stage import Stage, editor
from table import Row

from tests.support import processes
from tests.support.nvim import ROOT

PLUGIN_MS, SETUP_MS, REGISTER_MS = 0.3, 2.0, 3.0
READY = 1.5
BEFORE_MB, BEFORE_CPU, AFTER_MB = 45.0, 0.35, 100.0
IMPORTS = "import aiohttp.web, msgpack"
CLOCKED = """
local begun = vim.uv.hrtime()
vim.cmd.source(vim.fn.fnameescape(vim.env.BENCH_ROOT .. '/plugin/mcp-tools.lua'))
local sourced = vim.uv.hrtime()
vim.opt.runtimepath:prepend(vim.env.BENCH_ROOT)
local ready = vim.uv.hrtime()
require('mcp-tools').setup({ tools = 'all' })
local set_up = vim.uv.hrtime()
io.stdout:write(('%d %d\\n'):format(sourced - begun, set_up - ready))
vim.cmd.quitall({ bang = true })
"""
REGISTERS = """
vim.opt.runtimepath:prepend(vim.env.BENCH_ROOT)
local begun = vim.uv.hrtime()
require('mcp-tools').register({
  name = 'word_count',
  description = 'Counts words.',
  args = {
    text = { type = 'string', description = 'what is counted', required = true },
    least = { type = 'integer', description = 'letters of a word', default = 1, minimum = 1 },
  },
  annotations = { read_only = true },
  execute = function(ctx) ctx(1) end,
})
io.stdout:write(('%d\\n'):format(vim.uv.hrtime() - begun))
vim.cmd.quitall({ bang = true })
"""


@dataclass(frozen=True)
class Start:
    """Times in ms of a start without other plugins, and of one that first registers a tool."""

    plugin: float
    setup: float
    register: float


@dataclass(frozen=True)
class Ready:
    """One start of a program in seconds; for the bridge also its memory and processor time."""

    seconds: float
    megabytes: float = 0
    cpu: float = 0


async def measure(stage: Stage) -> list[Row]:
    """Starts and stops repeatedly."""
    count = stage.amount.rounds
    rounds = await interleaved(
        {"nvim": lambda: start_nvim(stage), "bridge": lambda: start_bridge(stage), "imports": run_imports},
        count,
    )
    plugin, setup = rounds.median("nvim", "plugin"), rounds.median("nvim", "setup")
    register = rounds.median("nvim", "register")
    ready = rounds.ratio("bridge", "imports", "seconds")
    own, bare = rounds.median("bridge", "seconds") * 1000, rounds.median("imports", "seconds") * 1000
    memory, cpu = rounds.median("bridge", "megabytes"), rounds.median("bridge", "cpu")
    after = await after_client(stage)
    return [
        *(
            Row(f"Neovim start-up: {what}", f"{ms:.2f} ms", f"≤ {stage.reach(most)}", ms <= stage.most(most))
            for what, ms, most in (
                ("plugin/", plugin, PLUGIN_MS),
                ('setup{tools = "all"}', setup, SETUP_MS),
                ("the first register()", register, REGISTER_MS),
            )
        ),
        Row(
            "ready line after start",
            f"{ready:.2f} × bare imports ({own:.0f} ms; imports {bare:.0f})",
            f"≤ {READY} × `python -c '{IMPORTS}'`",
            ready <= READY,
        ),
        Row(
            "bridge before its first client",
            f"{memory:.0f} MB, {cpu:.2f} s of CPU (imports alone {rounds.median('imports', 'cpu'):.2f})",
            f"≤ {BEFORE_MB:.0f} MB, ≤ {BEFORE_CPU} s",
            memory <= BEFORE_MB and cpu <= BEFORE_CPU,
        ),
        Row("bridge after its first client", f"{after:.0f} MB", f"≤ {AFTER_MB:.0f} MB", after <= AFTER_MB),
    ]


async def start_nvim(stage: Stage) -> Start:
    """Starts Neovim and measures each part."""
    return Start(*await clocked(stage, CLOCKED), *await clocked(stage, REGISTERS))


async def clocked(stage: Stage, text: str) -> list[float]:
    """Starts Neovim with this configuration, which prints the time in ns."""
    init = stage.home.path / "clocked.lua"
    init.write_text(text)
    process = await processes.start(
        *(str(stage.program), "--headless", "--noplugin", "-u", str(init), "-i", "NONE", "-n"),
        env=stage.home.environment() | {"BENCH_ROOT": str(ROOT)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output = (await process.communicate())[0].decode()
    try:
        return [int(part) / 1e6 for part in output.split()]
    except ValueError:
        raise load.BenchError(f"Neovim did not start: {output[-400:]}") from None


async def start_bridge(stage: Stage) -> Ready:
    """Starts a bridge and waits before its memory is measured."""
    async with servers.bridge(stage.editor.socket, stage.home, "second") as program:
        await asyncio.sleep(0.3)
        return Ready(program.ready_after, program.resident(), program.cpu())


async def run_imports() -> Ready:
    """The cost of Python and the necessary imports."""
    begun, before = time.perf_counter(), used()
    await asyncio.to_thread(processes.run, [sys.executable, "-c", IMPORTS], check=True)
    return Ready(time.perf_counter() - begun, cpu=used() - before)


def used() -> float:
    """Processor time in seconds of all ended children."""
    times = os.times()
    return times.children_user + times.children_system


async def after_client(stage: Stage) -> float:
    """Memory after a client has initialized, listed and called."""
    async with (
        editor(stage.program, stage.home.path / "small") as running,
        servers.bridge(running.socket, running.home, "third") as program,
    ):
        listing: dict[str, object] = {"method": "tools/list", "params": {}}
        found = []
        for message, expect in ((listing, "nvim_echo"), (servers.call("nvim_echo", "once"), "once")):
            endpoint = await servers.with_sessions(stage.http, program, message, expect)
            await servers.ask(stage.http, endpoint)
            found.append(program.resident())
        return median(found[-1:])
