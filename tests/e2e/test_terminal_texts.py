"""Messages and lists at a terminal of 80 columns: complete, or cut so that the advice stays."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest

from tests.support import terminal
from tests.support.nvim import ROOT, Spawn
from tests.support.terminal import Terminal

pytestmark = terminal.needed

LONG = "words that do not fit into one line, " * 3 + "and their end"
DAP_CLIENT = ROOT / "tests" / "lua" / "support" / "dap_client"

Open = Callable[..., AbstractAsyncContextManager[Terminal]]


async def messages(screen: Terminal) -> str:
    return await screen.nvim.lua("return vim.api.nvim_exec2('messages', { output = true }).output")


async def test_a_long_message_takes_one_line_and_no_key(idle: Terminal) -> None:
    """`:messages` has all of it."""
    before = await idle.nvim.lua("return vim.o.shortmess")
    await idle.nvim.lua("probe.notify.warn(...)", LONG)
    screen = await idle.shows("… (:messages)")
    assert "[mcp-tools] words that do not fit" in screen
    assert "their end" not in screen
    assert f"[mcp-tools] {LONG}" in (await messages(idle)).splitlines()
    await idle.nvim.lua("probe.notify.error(...)", f"first\n{LONG}\nthird")
    await idle.shows("[mcp-tools] first… (:messages)")
    assert (await messages(idle)).splitlines()[-3:] == ["[mcp-tools] first", LONG, "third"]
    assert await idle.nvim.lua("return vim.o.shortmess") == before
    await idle.nvim.lua("vim.opt.shortmess:remove('T')")
    await idle.nvim.lua("probe.notify.warn(...)", "漢字" * 60)  # wide characters take more room
    await idle.shows("漢字漢字", "… (:messages)")
    await idle.nvim.lua("probe.notify.progress(...)", "漢字" * 60)
    assert not (await idle.nvim.request("nvim_get_mode"))["blocking"]
    await idle.hides("… (:messages)")
    assert "T" not in await idle.nvim.lua("return vim.o.shortmess")
    await idle.nvim.lua("probe.notify.info('short')")
    await idle.shows("[mcp-tools] short")
    assert (await messages(idle)).splitlines()[-1] == "[mcp-tools] short"


async def test_a_long_message_of_nvim_dap_takes_no_key(idle: Terminal) -> None:
    say = "require('dap.utils').notify(..., vim.log.levels.ERROR)"
    await idle.nvim.lua("vim.opt.runtimepath:append(...)", str(DAP_CLIENT))
    await idle.nvim.lua("probe.dap_client.relay_messages()")
    await idle.nvim.lua(say, f"first\n{LONG}")
    await idle.shows("[nvim-dap] first… (:messages)")
    assert not (await idle.nvim.request("nvim_get_mode"))["blocking"]
    assert (await messages(idle)).splitlines()[-2:] == ["[nvim-dap] first", LONG]


async def test_messages_during_startup_are_kept_and_take_no_key(open_terminal: Open) -> None:
    init = f"for i = 1, 3 do probe.notify.warn(i .. ' {LONG}') end"
    async with open_terminal(init=init) as screen:
        await screen.shows("[mcp-tools] 3 words", "… (:messages)")
        for number in (1, 2, 3):
            assert f"[mcp-tools] {number} {LONG}" in await messages(screen)


async def test_a_cut_message_keeps_the_advice(open_terminal: Open) -> None:
    async with open_terminal() as screen:
        await screen.nvim.lua("mcp_tools.setup({ bridge = { python = '/nonexistent/python/of/mine' } })")
        await screen.command("McpTools start")
        await screen.shows("[mcp-tools] ", "… Set bridge.python to Python 3.11")
        assert "/nonexistent/python/of/mine" in await messages(screen)
        await screen.nvim.lua("mcp_tools.setup({ integrations = { claude = true, opencode = true } })")
        await screen.shows("[mcp-tools] integrations (", "Use `:McpTools connect`")


async def test_long_lines_of_lists_wrap(idle: Terminal) -> None:
    await idle.nvim.lua(
        "mcp_tools.register({ name = 'wordy', description = ..., execute = function() end })"
        "probe.notify.warn(...)",
        LONG,
    )
    await idle.nvim.wait_for("return probe.log.lines(1)[1]:find('their end')")
    for name in ("tools", "log"):
        await idle.command(f"McpTools {name}")
        await idle.shows(f"mcp-tools://{name}")
        await idle.until(lambda screen: "and their end" in " ".join(screen.split()), "the end of a long line")
    for name in ("status", "trust", "audit"):
        await idle.command(f"McpTools {name}")
        await idle.shows(f"mcp-tools://{name}")
        assert await idle.nvim.lua("return vim.wo.wrap"), name


@pytest.mark.slow
async def test_the_status_window_updates_itself(served: Terminal) -> None:
    await served.command("McpTools status")
    shown = await served.shows(
        "● ready", "Calls in flight  none", await served.nvim.lua("return mcp_tools.endpoint().url")
    )
    assert "ready: http" not in shown, "an automatic start is not announced"
    await served.nvim.lua("mcp_tools.call('test_progress', { delay_ms = 60000 }, {}, function() end)")
    await served.shows("Calls in flight  1", "test_progress  running")
    await served.nvim.lua("probe.bridge.stop()")
    await served.shows("● stopped")
    await served.command("McpTools cancel all")
    await served.shows("Calls in flight  none")
    await served.type("q")
    await served.hides("● stopped")


async def test_the_endpoint_is_shown_and_yanked(served: Terminal) -> None:
    """No message has the token."""
    endpoint = await served.nvim.lua("return mcp_tools.endpoint()")
    await served.command("McpTools endpoint")
    header = f"Authorization: Bearer {endpoint['token']}"
    await served.shows(f"\n{endpoint['url']}", "\nAuthorization: Bearer ", '"mcpServers": {')
    await served.shows("y yank", endpoint["token"])
    await served.type("jy")
    screen = await served.shows("register '\"'")
    assert screen.count(endpoint["token"]) == 2
    assert await served.nvim.request("nvim_call_function", "getreg", ['"']) == header
    await served.type("q")
    await served.hides(endpoint["token"])
    await served.command("McpTools endpoint a")
    await served.shows("register 'a'")
    assert endpoint["token"] in await served.nvim.request("nvim_call_function", "getreg", ["a"])
    assert endpoint["token"] not in await messages(served)


async def test_mistakes_of_tool_authors_are_reported(open_terminal: Open) -> None:
    init = """
    mcp_tools.register({
      name = 'mine', description = 'x', annotations = { read_only = true },
      timeout = 500,
      execute = function() return 'a result' end,
    })
    """
    async with open_terminal(init=init) as screen:
        await screen.command("McpTools tools disable bufer")
        await screen.shows("[mcp-tools] did you mean buffer? there is no group or tool 'bufer'")
        await screen.command("McpTools call mine")
        await screen.shows("[mcp-tools] Tool 'mine': `execute` returned a string")


async def test_the_help_opens_at_its_contents(idle: Terminal) -> None:
    await idle.command("helptags ALL | h mcp-tools | only")
    await idle.shows("AI assistants use tools of this running Neovim", "Quick start", "Write tools")


HIDING = {"Cc", "Cf", "Zs", "Zl", "Zp"}
"""Categories of invisible characters: controls, formats and blanks."""


async def test_every_invisible_character_is_shown_by_its_code(spawn_nvim: Spawn) -> None:
    every = range(sys.maxunicode + 1)
    codes = [code for code in every if unicodedata.category(chr(code)) in HIDING and chr(code) != " "]
    nvim = await spawn_nvim(init_lua=f"vim.opt.runtimepath:prepend([[{ROOT}]])")
    shown = await nvim.lua(
        "return vim.tbl_map(probe.sanitize.line, ...)", [f"a{chr(code)}b" for code in codes]
    )
    assert shown == [f"a<U+{code:04X}>b" for code in codes]
