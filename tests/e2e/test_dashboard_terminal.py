"""The dashboard at a real terminal of 80×24: what it shows, its keys, and that nothing stays when closed."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tests.support import terminal
from tests.support.captures import Captures
from tests.support.nvim import Home
from tests.support.terminal import Terminal

pytestmark = [pytest.mark.every_nvim, terminal.needed]

INIT = f"""
vim.opt.swapfile = false
_G.Timers = {{}} -- Neovim 0.10 ends where `vim.uv.walk` meets handles of its own
local new_timer = vim.uv.new_timer
vim.uv.new_timer = function()
  table.insert(Timers, (new_timer()))
  return Timers[#Timers]
end
_G.mcp_tools = require('mcp-tools')
mcp_tools.setup({{ tools = {{ 'buffer', 'file' }}, resources = false, prompts = false,
  bridge = {{ python = [[{sys.executable}]], autostart = false }}, OPTIONS }})
local function tool(name, execute, fields)
  mcp_tools.register(vim.tbl_extend('force', {{
    name = name, description = 'x', annotations = {{ read_only = true }}, execute = execute,
  }}, fields or {{}}))
end
tool('steps', function(ctx)
  ctx:progress(3, 8, 'files read')
  _G.go_on = function() ctx('the end') end
end, {{ timeout = 0 }})
tool('greet', function(ctx, args) ctx('Hello ' .. args.name) end, {{
  description = 'Says hello. It says nothing else, however much of it'
    .. ' there is to read: to the last word.',
  args = {{ name = {{ type = 'string', required = true,
    description = 'of whom' }} }},
}})
"""

HELD = """
local beats = 0
for _, timer in ipairs(Timers) do -- that go on and on; others end by themselves
  beats = beats + (timer:is_active() and timer:get_repeat() > 0 and 1 or 0)
end
local own = vim.tbl_filter(function(each) -- Neovim waits for its terminal at the start
  return each.event ~= 'TermResponse'
end, vim.api.nvim_get_autocmds({}))
return { #vim.api.nvim_list_bufs(), #vim.api.nvim_list_wins(), #own, beats }
"""


@pytest.fixture
def options() -> str:
    """Options beside those that all tests have."""
    return ""


@pytest.fixture
async def screen(nvim_program: Path, home: Home, options: str) -> AsyncIterator[Terminal]:
    """A terminal in which nothing is open yet, and no bridge runs."""
    async with terminal.opened(nvim_program, home, init_lua=INIT.replace("OPTIONS", options)) as opened:
        yield opened
        assert "Press ENTER" not in await opened.screen()


async def call(screen: Terminal, name: str) -> None:
    """Call a tool as a plugin does."""
    await screen.nvim.lua(f"mcp_tools.call('{name}', {{}}, {{ client = 'test' }}, function() end)")


def settled(screen: str) -> str:
    """The frame without what differs from run to run, in as many cells: times, bars, folders, what is off."""

    def wide(text: str) -> Callable[[re.Match[str]], str]:
        return lambda match: text.rjust(len(match[0]))

    rows = []
    for line in screen.splitlines():
        line = line[1:].rstrip()
        if line[:1] in "╭│╰" and line and "▸ ○" not in line:
            line = re.sub(r" *\d+(?:\.\d)? (?:ms|s|min)\b(?: ago)?", wide(" TIME"), line)
            line = re.sub(r"[▁▂▃▄▅▆▇█]+(?= +TIME)", wide("B"), line)
            line = re.sub(r"(?:any key|q) closes this ─+", wide("CLOSES"), line)  # q on 0.10
            line = re.sub(r"(?<=│  log )( *)/.*(?=│)", wide("FOLDER"), line)
            rows.append(re.sub(r"\d+(?:\.\d)?k? tokens", wide("TOKENS"), line))
    return "\n".join(rows)


async def test_what_it_shows(screen: Terminal, captures: Captures) -> None:
    """`:McpTools` alone opens it: calls in flight, those that ended, tools by group; `?` lists every key."""
    await call(screen, "steps")
    await call(screen, "greet")
    await screen.command("McpTools")
    shown = await screen.shows("steps", "validation error", "stopped", "Tools")
    captures.matches("dashboard/open", settled(shown))
    await screen.type("?")
    captures.matches("dashboard/help", settled(await screen.shows("show the keys", "redraw")))
    await screen.type("q")
    await screen.shows("Calls in flight")
    await screen.type("q")
    await screen.hides("Calls in flight")


async def test_live(screen: Terminal) -> None:
    """What happens is seen without a key, the cursor stays on its row, and rows that stay are not written."""
    await screen.command("McpTools")
    await screen.shows("Calls in flight  none")
    await screen.nvim.lua(
        "_G.Written = 0"
        " vim.api.nvim_buf_attach(0, false, { on_lines = function(_, _, _, first, _, last)"
        " Written = Written + last - first end })"
    )
    await screen.type("rr")
    assert await screen.nvim.lua("return Written") == 0
    await screen.enter("/registered")
    await call(screen, "steps")
    await screen.shows("Calls in flight  1", "███", "files read")
    assert 1 <= await screen.nvim.lua("return Written") <= 4
    line = await screen.nvim.request("nvim_get_current_line")
    assert "registered" in line
    await screen.nvim.lua("go_on()")
    await screen.shows("Calls in flight  none", "✓  steps")


async def test_keys(screen: Terminal) -> None:
    """A call is cancelled, a group unfolded, its tool switched off; a key on nothing says what it is for."""
    await call(screen, "steps")
    await screen.command("McpTools")
    await screen.shows("Calls in flight  1")
    await screen.type("x")
    await screen.shows("x is for a call")
    await screen.enter("/steps")
    await screen.type("x")
    await screen.shows("Calls in flight  none", "− ", "cancelled steps")
    await screen.enter("/registered", "Enter")
    await screen.shows("greet", "verified")
    await screen.enter("/greet", "Enter")
    await screen.shows("runs: ", "string, required  of whom", "Says hello. It", "to the last word.")
    await screen.type("t")
    await screen.shows("○  greet", "1 of 2")
    assert await screen.nvim.lua("return mcp_tools.list_tools().greet") is None
    await screen.type("t")
    await screen.shows("●  greet", "2 of 2")

    await screen.type("t")
    await screen.shows("○  greet", "1 of 2")
    await screen.type("c")
    await screen.shows("greet is off; t switches it on", "○  greet")
    await screen.type("q")
    await screen.command("McpTools call greet")
    await screen.shows("it is off; turn it on with :McpTools tools enable greet")


async def test_a_call_by_hand(screen: Terminal) -> None:
    """`c` asks for the arguments and calls; the next time those of the last time stand there."""
    await screen.command("McpTools")
    await screen.shows("registered")
    await screen.enter("/registered", "Enter")
    await screen.enter("/greet")
    await screen.type("c")
    await screen.shows("greet: name (of whom)")
    await screen.enter("Ann")
    await screen.shows("Hello Ann")
    await screen.command("McpTools")
    await screen.type("G/greet")
    await screen.press("Enter", "n")  # the first is the call that was made
    await screen.type("c")
    await screen.shows("greet: name (of whom): Ann")
    await screen.press("Enter")
    await screen.shows("Hello Ann")


@pytest.mark.parametrize("options", ["", "ui = { dashboard = 'split' }"], ids=["float", "split"])
async def test_nothing_is_left(screen: Terminal) -> None:
    """However it is closed, its buffer, window, autocommands and timers are gone; it opens again."""
    before = None
    for end in ("q", ":close\r", ":bwipeout!\r", "q"):
        await screen.command("McpTools")
        await screen.shows("Calls in flight")
        assert await screen.nvim.lua(HELD) != before
        await screen.type(end)
        await screen.hides("Calls in flight")
        before = before or await screen.nvim.lua(HELD)
        wanted = ", ".join(map(str, before))
        await screen.nvim.wait_for(
            f"local now = (function() {HELD} end)() return vim.deep_equal(now, {{ {wanted} }})"
        )


async def test_hidden_it_does_nothing(screen: Terminal) -> None:
    """On another tab page it has no timer and is not drawn; back on its page it shows what is now."""
    await call(screen, "steps")  # a call keeps a timer of its own, for what is told of it elsewhere
    await screen.command("tabnew")
    beats = (await screen.nvim.lua(HELD))[3]
    await screen.command("tabprevious")
    await screen.command("McpTools")
    await screen.shows("Calls in flight  1")
    await screen.command("tabnext")
    await screen.nvim.wait_for(f"local now = (function() {HELD} end)() return now[4] == {beats}")
    await call(screen, "steps")
    assert (await screen.nvim.lua(HELD))[3] == beats
    await screen.command("tabprevious")
    await screen.shows("Calls in flight  2")


async def register(screen: Terminal) -> str:
    """What was yanked last."""
    text: str = await screen.nvim.lua("return vim.fn.getreg('\"')")
    return text


@pytest.mark.slow
async def test_keys_of_the_bridge(screen: Terminal) -> None:
    """Without one `y` says so; `S` starts it and stops it; `y` yanks its URL, and `Y` a whole entry."""
    await screen.command("McpTools")
    await screen.shows("● stopped")
    await screen.type("y")
    await screen.shows("[mcp-tools] the bridge is not running. :McpTools start")
    await screen.type("S")
    await screen.shows("● ready", timeout=20_000)
    url = await screen.nvim.lua("return mcp_tools.status().url")
    await screen.type("y")
    await screen.shows(f"has {url}")
    assert await register(screen) == url
    await screen.type("Y")
    await screen.nvim.wait_for("return vim.fn.getreg('\"'):find('Bearer', 1, true)")
    entry = json.loads(await register(screen))
    assert url in json.dumps(entry)
    await screen.type("S")
    await screen.shows("● stopped", timeout=20_000)


async def test_keys_that_lead_elsewhere(screen: Terminal) -> None:
    """`C` asks which client, `L` shows the log; what is the dashboard's makes way for it."""
    await screen.command("McpTools")
    await screen.shows("Calls in flight")
    await screen.enter("j")
    await screen.shows("this row has no details")
    await screen.type("C")
    await screen.shows("connect which client?", "Claude Code (not installed)")
    await screen.press("Escape")
    await screen.hides("connect which client?")
    await screen.hides("Calls in flight")
    await screen.command("McpTools")
    await screen.shows("Calls in flight")
    await screen.type("L")
    await screen.hides("Calls in flight")
    await screen.nvim.wait_for("return vim.api.nvim_buf_get_name(0) == 'mcp-tools://log'")


@pytest.mark.parametrize("options", ["mounts = { none = { command = { 'no-such-program' } } }"])
async def test_mounts(screen: Terminal) -> None:
    """A mounted server has a row with what is wrong, and a key that connects it anew."""
    await screen.command("McpTools")
    await screen.shows("Mounted servers", "●  none")
    await screen.type("gg")
    await screen.type("R")
    await screen.shows("R is for a mount")
    await screen.enter("/none  stopped")
    await screen.enter("R")
    await screen.hides("Calls in flight")
    await screen.nvim.wait_for("return vim.api.nvim_buf_get_name(0) == 'mcp-tools://mounts'")


async def test_what_waits(screen: Terminal) -> None:
    """A question for approval is above all else, and its row leads there; an edit leads to all of them."""
    await screen.nvim.lua("mcp_tools.setup({ approval = { default = 'ask', ttl = 0 } })")
    await screen.command("edit a.txt")
    await screen.type("iold")
    await screen.press("Escape")
    await screen.command("McpTools")
    edit = "{ bufnr = 1, edits = { { search = 'old', replace = 'new' } } }"
    await screen.nvim.lua(
        "mcp_tools.setup({ review = { when = 'never' } })"
        f" mcp_tools.call('file_edit', {edit}, {{ client = 'test' }}, function() end)"
    )
    await screen.shows("Waiting for you", "1 question for approval")
    await screen.enter("gg/question for", "Enter")
    await screen.hides("Calls in flight")
    await screen.nvim.wait_for("return vim.b.mcp_tools_approval ~= nil")
    await screen.type("y")
    await screen.hides("Allow this call?")
    await screen.command("McpTools")
    await screen.shows("Changes by agents", "1 edit in 1 file  file_edit  a.txt")
    await screen.enter("gg/1 edit", "Enter")
    await screen.nvim.wait_for("return vim.api.nvim_buf_get_name(0) == 'mcp-tools://changes'")


async def test_offers(screen: Terminal) -> None:
    """Resources and prompts are counted, and listed when unfolded."""
    await screen.nvim.lua("mcp_tools.setup({ resources = true, prompts = true })")
    await screen.command("McpTools")
    await screen.enter("/Resources and", "Enter")
    await screen.type("zt")
    await screen.shows("▾ Resources and prompts", "nvim://")
