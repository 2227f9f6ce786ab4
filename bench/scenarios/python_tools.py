"""Tools written in Python: a call compared with one in Lua, the start of their worker, and listing them."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path

import load
import servers
from rounds import interleaved
from stage import Stage
from table import Row

from tests.support import processes
from tests.support.nvim import Nvim

FOLDER = Path(__file__).resolve().parents[1] / "python_tools"
TEXT = "a line of text, as tools are given it"
BARE_HOST = FOLDER / "bare_host.py"
CALL, START_MS, HELD_MS = 2.0, 150.0, 16.0
IMPORT = "import pynvim"
PREPARE = """
local folder, python = ...
vim.opt.runtimepath:append(folder)
require('mcp-tools').setup({ bridge = { python = python } })
local core = require('mcp-tools.core')
require('mcp-tools.loading').refresh(core.get().registry, 'python')
"""
THERE = "return require('mcp-tools.core').get().registry:get('py_echo') ~= nil"
BARE = """
local python, script = ...
_G.bare = _G.bare or vim.fn.jobstart({ python, script }, { rpc = true })
local times, begun = {}, nil
_G.came_back = function()
  table.insert(times, (vim.uv.hrtime() - begun) / 1e6)
  if #times == 1000 then
    table.sort(times)
    _G.median = times[500]
    return
  end
  begun = vim.uv.hrtime()
  vim.rpcnotify(_G.bare, 'echo', 'a line of text, as tools are given it')
end
_G.median, begun = nil, vim.uv.hrtime()
vim.rpcnotify(_G.bare, 'echo', '')
"""
MEDIAN = "return _G.median"
STATUS = "return require('mcp-tools.python_worker.worker').status()"
RESTART = """
require('mcp-tools.python_worker.worker').restart()
_G.answered = nil
require('mcp-tools').call('py_echo', { text = '' }, function(result)
  _G.answered = result
end)
"""


WATCH = """
_G.held = 0
local last = vim.uv.hrtime()
_G.watch = vim.uv.new_timer()
_G.watch:start(1, 1, function()
  local now = vim.uv.hrtime()
  _G.held, last = math.max(_G.held, (now - last) / 1e6), now
end)
"""
HELD = "_G.watch:close(); return _G.held"


@dataclass(frozen=True)
class Start:
    """Times of one start in ms; for the worker also the longest block of the editor."""

    ms: float
    held: float = 0


async def measure(stage: Stage) -> list[Row]:
    """Load on both tools in turn, and repeated starts of the process."""
    await stage.editor.lua(PREPARE, str(FOLDER), sys.executable)
    await stage.editor.wait_for(THERE, timeout=20_000)
    listed = await stage.editor.lua(STATUS)
    ours, lua = servers.call("nvim_py_echo", TEXT), servers.call("nvim_echo", TEXT)
    python_endpoint = await servers.with_sessions(stage.http, stage.bridge, ours, TEXT, 1)
    lua_endpoint = await servers.with_sessions(stage.http, stage.bridge, lua, TEXT, 1)
    for endpoint in (python_endpoint, lua_endpoint):
        await load.run(endpoint, 1, 1)
    rounds = await interleaved(
        {
            "python": lambda: load.run(python_endpoint, stage.amount.seconds, 1),
            "lua": lambda: load.run(lua_endpoint, stage.amount.seconds, 1),
            "bare": lambda: notify_bare(stage.editor),
            "start": lambda: start_host(stage.editor),
            "import": start_python,
        },
        stage.amount.rounds,
    )
    start, held = rounds.median("start", "ms"), rounds.median("start", "held")
    python, other, bare = (
        rounds.median("python", "p50"),
        rounds.median("lua", "p50"),
        rounds.median("bare", "ms"),
    )
    least = other + bare
    state = listed["state"]
    return [
        Row(
            "Python tool, sync call, p50",
            f"{python / least:.2f} × Lua tool and bare pynvim"
            f" ({python:.3f} ms; Lua {other:.3f}, there and back to pynvim {bare:.3f})",
            f"≤ {CALL:g} × both",
            python / least <= CALL,
        ),
        Row(
            "Python host, start to its first answer",
            f"{start:.0f} ms (`{IMPORT}` alone {rounds.median('import', 'ms'):.0f})",
            f"≤ {START_MS:.0f} ms",
            start <= START_MS,
        ),
        Row(
            "main thread, end and start of a Python host",
            f"{held:.1f} ms at most",
            f"≤ {HELD_MS:.0f} ms",
            held <= HELD_MS,
        ),
        Row(
            "hosts that run once Python tools are listed",
            "0" if state == "none" else state,
            "0",
            state == "none",
        ),
    ]


async def notify_bare(editor: Nvim) -> Start:
    """The median of a round trip to a process with bare pynvim."""
    await editor.lua(BARE, sys.executable, str(BARE_HOST))
    return Start(await editor.wait_for(MEDIAN, timeout=20_000))


async def start_host(editor: Nvim) -> Start:
    """Restarts the worker with a call."""
    await editor.lua(WATCH)
    await editor.lua(RESTART)
    await editor.wait_for("return _G.answered ~= nil", timeout=20_000)
    held = await editor.lua(HELD)
    return Start((await editor.lua(STATUS))["start_ms"], held)


async def start_python() -> Start:
    """The minimal time of Python for that."""
    begun = time.perf_counter()
    process = await processes.start(sys.executable, "-I", "-c", IMPORT)
    await process.wait()
    return Start((time.perf_counter() - begun) * 1000)
