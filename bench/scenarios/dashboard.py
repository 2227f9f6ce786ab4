"""The time from a key to the screen with the dashboard open, during 500 calls per second."""

from __future__ import annotations

import sys
from statistics import median

from stage import Stage
from table import Row

from tests.support import nvim
from tests.support.nvim import Home

from .typing import BURSTS, LINES, typed

MOST = 5  # ms at p99

INIT = f"""
vim.o.swapfile = false
Tools = require('mcp-tools')
Tools.setup({{ tools = 'all', ui = {{ dashboard = 'split' }},
  bridge = {{ python = [[{sys.executable}]], autostart = false }} }})
Tools.register({{ name = 'echo', description = 'x', annotations = {{ read_only = true }},
  execute = function(ctx) ctx('x') end }})
"""
LOAD = """
local begun = vim.uv.hrtime()
Made, Answered = 0, 0
Load = vim.uv.new_timer()
Load:start(2, 2, vim.schedule_wrap(function()
  while Made < (vim.uv.hrtime() - begun) / 2e6 do -- 500 a second, also when the editor was busy
    Made = Made + 1
    Tools.call('echo', {}, {}, function(result)
      Answered = Answered + (result and 1 or 0)
    end)
  end
end))
"""
OPEN = """
local here = vim.api.nvim_get_current_win()
vim.cmd('McpTools')
Dashboard = vim.api.nvim_get_current_win()
vim.api.nvim_set_current_win(here)
"""


async def measure(stage: Stage) -> list[Row]:
    """Keys under the load of calls, without the dashboard and with it, in turn."""
    home = Home(stage.home.path.parent / "dashboard")
    home.path.mkdir()
    path = home.make("cwd") / "long.txt"
    path.write_text("".join(f"local value_{i} = {i}\n" for i in range(LINES)))
    bursts = BURSTS * stage.amount.rounds * stage.amount.seconds
    async with nvim.running(stage.program, home, init_lua=INIT, args=[str(path)]) as editor:
        await editor.attach_ui()
        await editor.lua(LOAD)
        await editor.wait_for("return Answered > 100")
        pairs = []
        for _ in range(stage.amount.rounds):
            alone = await typed(editor, bursts)
            await editor.lua(OPEN)
            pairs.append((alone, await typed(editor, bursts)))
            await editor.lua("vim.api.nvim_win_close(Dashboard, true)")
        await editor.lua("Load:close()")
    value = median(both for _, both in pairs)
    return [
        Row(
            "a key, p99, with the dashboard open and 500 calls/s",
            f"{value:.2f} ms; without it {median(alone for alone, _ in pairs):.2f} ms",
            f"≤ {MOST} ms",
            value <= MOST,
        )
    ]
