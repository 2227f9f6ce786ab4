"""The dashboard at a real terminal of 80×24: what it shows, its keys, and what is left when it is closed."""

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
_G.Timers = {{}} -- `vim.uv.walk` crashes Neovim 0.10
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
  _G.finish = function() ctx('the end') end
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
for _, timer in ipairs(Timers) do -- that repeat; others end by themselves
  beats = beats + (timer:is_active() and timer:get_repeat() > 0 and 1 or 0)
end
local own = vim.tbl_filter(function(each) -- Neovim waits for its terminal at the start
  return each.event ~= 'TermResponse'
end, vim.api.nvim_get_autocmds({}))
return { #vim.api.nvim_list_bufs(), #vim.api.nvim_list_wins(), #own, beats }
"""


@pytest.fixture
def options() -> str:
    return ""


@pytest.fixture
async def screen(nvim_program: Path, home: Home, options: str) -> AsyncIterator[Terminal]:
    """A terminal without windows and without a bridge."""
    async with terminal.opened(nvim_program, home, init_lua=INIT.replace("OPTIONS", options)) as opened:
        yield opened
        assert "Press ENTER" not in await opened.screen()


async def call(screen: Terminal, name: str) -> None:
    await screen.nvim.lua(f"mcp_tools.call('{name}', {{}}, {{ client = 'test' }}, function() end)")


def settled(screen: str) -> str:
    """The frame with placeholders of the same width for what varies, and without disabled tools."""

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


async def test_it_shows_calls_tools_and_keys(screen: Terminal, captures: Captures) -> None:
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


async def test_it_updates_itself_and_keeps_the_cursor_on_its_row(screen: Terminal) -> None:
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
    await screen.nvim.lua("finish()")
    await screen.shows("Calls in flight  none", "✓  steps")


async def test_keys_cancel_calls_unfold_groups_and_switch_tools(screen: Terminal) -> None:
    await call(screen, "steps")
    await screen.command("McpTools")
    await screen.shows("Calls in flight  1")
    await screen.type("x")
    await screen.shows("x is for a call")
    await screen.enter("/steps")
    await screen.type("x")
    await screen.shows("Calls in flight  none", "− ", "cancelled steps")
    await screen.enter("/registered", "Enter")
    await screen.shows("greet", "verified", " tokens")
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


async def test_a_key_calls_a_tool_and_remembers_its_arguments(screen: Terminal) -> None:
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
    await screen.press("Escape")
    await screen.shows("14 enabled")
    await screen.type("c")
    await screen.shows("greet: name (of whom): Ann")
    await screen.press("Enter")
    await screen.shows("Hello Ann")


@pytest.mark.parametrize("options", ["", "ui = { dashboard = 'split' }"], ids=["float", "split"])
async def test_closing_it_leaves_nothing_behind(screen: Terminal) -> None:
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


@pytest.mark.slow
async def test_it_does_nothing_while_hidden(screen: Terminal) -> None:
    await call(screen, "steps")  # a running call has a timer
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


@pytest.mark.slow
async def test_keys_start_and_stop_the_bridge_and_yank_its_entry(screen: Terminal) -> None:
    await screen.command("McpTools")
    await screen.shows("● stopped")
    await screen.type("y")
    await screen.shows("[mcp-tools] the bridge is not running. :McpTools start")
    await screen.type("S")
    await screen.shows("● ready", timeout=20_000)
    url = await screen.nvim.lua("return mcp_tools.status().url")
    await screen.type("y")
    await screen.shows(f"has {url}")
    register = "return vim.fn.getreg('\"')"
    assert await screen.nvim.lua(register) == url
    await screen.type("Y")
    await screen.nvim.wait_for(f"{register}:find('Bearer', 1, true)")
    assert url in json.dumps(json.loads(await screen.nvim.lua(register)))
    await screen.type("S")
    await screen.shows("● stopped", timeout=20_000)


async def test_enter_shows_the_whole_note_of_a_client(screen: Terminal) -> None:
    await screen.nvim.lua("require('mcp-tools').setup({ agents = { 'gemini' } })")
    await screen.command("McpTools")
    await screen.type("S")
    await screen.shows("Gemini CLI    editor link  on by the option", "…", timeout=20_000)
    await screen.hides("auto_edit")
    await screen.enter("/Gemini")
    await screen.enter("")
    await screen.shows("proposes edits in its default mode; never with", "auto_edit`")
    await screen.enter("")
    await screen.hides("auto_edit")


async def test_keys_open_the_clients_and_the_log(screen: Terminal) -> None:
    await screen.command("McpTools")
    await screen.shows("Calls in flight")
    await screen.enter("j")
    await screen.shows("this row has no details")
    await screen.type("C")
    await screen.shows("Connect which client?", "Claude Code, not installed")
    await screen.press("Escape")
    await screen.hides("Connect which client?")
    await screen.shows("Calls in flight")
    await screen.type("L")
    await screen.hides("Calls in flight")
    await screen.nvim.wait_for("return vim.api.nvim_buf_get_name(0) == 'mcp-tools://log'")


@pytest.mark.parametrize("options", ["mounts = { none = { command = { 'no-such-program' } } }"])
async def test_a_mounted_server_has_a_row_and_a_key_to_reconnect(screen: Terminal) -> None:
    await screen.command("McpTools")
    await screen.shows("Mounted servers", "●  none")
    await screen.type("gg")
    await screen.type("R")
    await screen.shows("R is for a mount")
    await screen.enter("/none  stopped")
    await screen.enter("R")
    await screen.hides("Calls in flight")
    await screen.nvim.wait_for("return vim.api.nvim_buf_get_name(0) == 'mcp-tools://mounts'")


async def test_open_questions_and_edits_have_rows_that_lead_to_them(screen: Terminal) -> None:
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


async def test_resources_and_prompts_are_listed_when_unfolded(screen: Terminal) -> None:
    await screen.nvim.lua("mcp_tools.setup({ resources = true, prompts = true })")
    await screen.command("McpTools")
    await screen.enter("/Resources and", "Enter")
    await screen.type("zt")
    await screen.shows("▾ Resources and prompts", "nvim://")
