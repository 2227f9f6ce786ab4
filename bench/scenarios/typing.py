"""The time from a key to the screen with a review open and an agent notified of every cursor move."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator
from statistics import median, quantiles
from time import perf_counter

import aiohttp
from stage import Stage
from table import Row

from tests.support import nvim
from tests.support.nvim import Home, Nvim

MORE = 2  # ms at p99
LINES, EVERY = 5_000, 25  # lines between two hunks
BURST = "a key<CR>in "  # typed at once; the review is updated in the pause after it
BURSTS = 4  # per round and second of load that other scenarios have
PACE = 0.01  # s from key to key
PAUSE = 0.1

INIT = f"""
vim.o.swapfile = false
require('mcp-tools').setup({{ agents = {{ 'claude' }}, bridge = {{ python = [[{sys.executable}]] }} }})
"""
OPEN = """
local lines = vim.api.nvim_buf_get_lines(0, 0, -1, false)
for i = ..., #lines, (...) do
  lines[i] = lines[i] .. ' + 1'
end
Review = require('mcp-tools.editor.review').open({
  client = { name = 'bench' },
  key = 'bench',
  title = 'a change',
  files = { { path = vim.api.nvim_buf_get_name(0), text = table.concat(lines, '\\n') .. '\\n' } },
  on_end = function() end,
})
"""
SHOWN = "return require('mcp-tools.editor.review').current() ~= nil"
CONTEXT_SENT = """
return vim.iter(require('mcp-tools.editor.agents').sessions()):any(function(session)
  return session.sent_context ~= nil
end)
"""


def keys() -> list[str]:
    """The keys of a burst."""
    return ["<CR>" if key == "\n" else key for key in BURST.replace("<CR>", "\n")]


async def shown(editor: Nvim) -> None:
    """Wait until the screen is drawn."""
    async with asyncio.timeout(5):
        while True:
            method, events = await editor.notifications.get()
            if method == "redraw" and any(event[0] == "flush" for event in events):
                return


async def key(editor: Nvim, name: str) -> float:
    """Presses a key and returns the ms until it is on the screen."""
    while not editor.notifications.empty():
        editor.notifications.get_nowait()
    started = perf_counter()
    await editor.request("nvim_input", name)
    await shown(editor)
    return (perf_counter() - started) * 1000


async def typed(editor: Nvim, bursts: int) -> float:
    """Type in the middle of the file; p99 of a key."""
    await editor.request("nvim_input", f"<Esc>{LINES // 2}Go")
    await editor.wait_for("return vim.fn.mode() == 'i'")
    times = []
    for _ in range(bursts):
        for name in keys():
            times.append(await key(editor, name))
            await asyncio.sleep(PACE)
        await asyncio.sleep(PAUSE)
    await editor.request("nvim_input", "<Esc>")
    return quantiles(times, n=100)[98]


@contextlib.asynccontextmanager
async def watched(editor: Nvim, home: Home, http: aiohttp.ClientSession) -> AsyncIterator[None]:
    """Opens a review of many hunks and connects an agent that is notified of every cursor move."""
    (path,) = (home.path / "home" / ".claude" / "ide").glob("*.lock")
    header = {"x-claude-code-ide-authorization": json.loads(path.read_text())["authToken"]}
    url = f"http://127.0.0.1:{path.stem}/"
    async with http.ws_connect(url, protocols=["mcp"], headers=header) as agent:
        await agent.send_json(
            {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "initialize",
                "params": {
                    "protocolVersion": "2025-06-18",
                    "capabilities": {},
                    "clientInfo": {"name": "bench", "version": "1"},
                },
            }
        )
        await agent.receive(timeout=5)
        await agent.send_json({"jsonrpc": "2.0", "method": "notifications/initialized"})
        await editor.lua(OPEN, EVERY)
        await editor.wait_for(SHOWN)
        await editor.wait_for(CONTEXT_SENT)
        heard = 0

        async def read() -> None:
            nonlocal heard
            async for _ in agent:
                heard += 1

        reading = asyncio.create_task(read())
        try:
            yield
            assert heard, "the agent heard of nothing"
        finally:
            reading.cancel()
            await editor.lua("Review.close()")
            await asyncio.wait([reading])


async def measure(stage: Stage) -> list[Row]:
    """The same keys without and with the review in turn, in a separate editor with its bridge."""
    home = Home(stage.home.path.parent / "typing")
    home.path.mkdir()
    path = home.make("cwd") / "long.txt"
    path.write_text("".join(f"local value_{i} = {i}\n" for i in range(LINES)))
    bursts = BURSTS * stage.amount.rounds * stage.amount.seconds
    async with nvim.running(stage.program, home, init_lua=INIT, args=[str(path)]) as editor:
        await editor.attach_ui()
        await editor.lua("require('mcp-tools').start()")
        await editor.wait_for(
            "return #((require('mcp-tools.agents').status()[1] or {}).files or {}) > 0", timeout=20_000
        )
        pairs = []
        for _ in range(stage.amount.rounds):
            alone = await typed(editor, bursts)
            async with watched(editor, home, stage.http):
                pairs.append((alone, await typed(editor, bursts)))
    more = median(both - alone for alone, both in pairs)
    value = f"{more:+.2f} ms to {median(alone for alone, _ in pairs):.2f} ms"
    hunks = LINES // EVERY
    return [
        Row(
            f"a key, p99, what a review of {hunks} hunks and context for an agent add",
            value,
            f"≤ {MORE} ms more",
            more <= MORE,
        )
    ]
