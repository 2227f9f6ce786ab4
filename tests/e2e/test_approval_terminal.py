"""The question for approval at a real terminal: what is on the screen, and where the keys go."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import terminal
from tests.support.bridge import ROOT_TOOLS, Bridge, connect
from tests.support.nvim import Home
from tests.support.results import error_of, text_of
from tests.support.terminal import Terminal, ended

from .test_cli import Shell

pytestmark = [pytest.mark.every_nvim, terminal.needed]

INIT = f"""
_G.mcp_tools = require('mcp-tools')
mcp_tools.setup({{ bridge = {{ python = [[{sys.executable}]] }}, approval = {{ timeout = 60000 }} }})
{ROOT_TOOLS}
vim.keymap.set({{ 'n', 'i', 't' }}, '<F5>', '<Plug>(mcp-tools-approve)')
"""

RISKY = {"path": "notes.txt", "text": 'first\nclient  calls itself "you"', "odd": "a\u202eb\u200bc\x07"}


@pytest.fixture
async def screen(nvim_program: Path, home: Home) -> AsyncIterator[Terminal]:
    """A terminal whose Neovim has a bridge and the tools of tools.lua."""
    async with terminal.opened(nvim_program, home, init_lua=INIT) as opened:
        await opened.nvim.wait_for("return mcp_tools.endpoint()", timeout=15_000)
        yield opened
        assert "Press ENTER" not in await opened.screen()


def ran(screen: Terminal) -> Any:
    """How often the tool that asks has run."""
    return screen.nvim.lua("return Seen.late")


async def looked_at(screen: Terminal, ms: int = 400) -> None:
    """Wait as a person does who reads first: an answer at once may be meant for the question before."""
    await screen.nvim.wait_for(
        "local question = probe.approval.current()"
        " return question and vim.uv.hrtime() - question.shown_at > 1e6 * ...",
        ms,
    )


async def test_typing_goes_to_the_text(screen: Terminal, bridge: Bridge) -> None:
    """The window shows all that is asked for; it takes no key, in insert mode, normal mode or a command."""
    async with connect(bridge, "sessions") as client:
        await screen.type("iyes ")
        call = asyncio.create_task(client.call_tool("nvim_risky", RISKY))
        await screen.shows("Allow this call?")
        await screen.type("yna")
        await screen.shows(
            "yes yna",
            "tool    risky",
            "tools.lua",
            'client  calls itself "mcp"',
            "reason  it can destroy",
            "/notes.txt",
            '"a<U+202E>b<U+200B>c<U+0007>"',
            "text of 2 lines",
            '│ client  calls itself "you"',
            ":McpTools approve",
        )
        assert await screen.nvim.request("nvim_buf_get_lines", 0, 0, -1, False) == ["yes yna"]
        assert (await screen.nvim.request("nvim_get_mode"))["mode"] == "i"
        await screen.press("Escape")
        await screen.type("yyp")
        await screen.nvim.wait_for("return vim.api.nvim_buf_line_count(0) == 2")
        assert await ran(screen) == 0
        await screen.command("McpTools approve")
        assert text_of(await ended(call)) == "it ran"
        await screen.hides("Allow this call?")


@pytest.mark.slow
async def test_keys_in_the_window(screen: Terminal, bridge: Bridge) -> None:
    """Who goes into the window answers by a key; `q` leaves the question open, closing the window is a no."""

    async def ask() -> asyncio.Task[Any]:
        await screen.hides("Allow this call?")
        call = asyncio.create_task(client.call_tool("nvim_risky", {}))
        await screen.shows("without arguments")
        await looked_at(screen)
        await screen.command("McpTools approve look")
        return call

    async with connect(bridge, "sessions") as client:
        call = await ask()
        await screen.type("q")
        await screen.nvim.wait_for("return vim.b.mcp_tools_approval == nil")
        await screen.shows("Allow this call?")
        await screen.command("McpTools approve look")
        await screen.type("y")
        assert text_of(await ended(call)) == "it ran"

        call = await ask()
        await screen.type("n")
        assert error_of(await ended(call))["code"] == "access_denied"

        call = await ask()
        await screen.command("close")
        assert error_of(await ended(call))["code"] == "access_denied"
        await screen.shows("risky was denied: its window was closed")
        assert await ran(screen) == 1

        call = await ask()
        await screen.type("s")
        assert text_of(await ended(call)) == "it ran"
        assert text_of(await client.call_tool("nvim_risky", {})) == "it ran"
    async with connect(bridge, "sessions") as client:
        call = await ask()
        await screen.type("N")
        await screen.shows("Why not?")
        await screen.enter("wrong file")
        assert 'said no: "wrong file"' in error_of(await ended(call))["message"]
        call = await ask()
        await screen.type("X")
        assert error_of(await ended(call))["code"] == "access_denied"
        assert "always denies it" in error_of(await client.call_tool("nvim_risky", {}))["message"]
        await screen.hides("Allow this call?")


@pytest.mark.slow
async def test_a_tool_runs_where_the_person_was(screen: Terminal, bridge: Bridge) -> None:
    """Who answers inside the window has left it by the time the tool looks at the editor."""
    await screen.nvim.lua("""
      mcp_tools.register({ name = 'here', description = 'x', needs_approval = true,
        execute = function(ctx) ctx(vim.fs.basename(vim.api.nvim_buf_get_name(0))) end })
    """)
    await screen.command("edit notes.txt | split")
    async with connect(bridge, "sessions") as client:
        call = asyncio.create_task(client.call_tool("nvim_here", {}))
        await screen.shows("Allow this call?")
        await looked_at(screen)
        await screen.command("McpTools approve look")
        await screen.shows("y once")
        before = await screen.nvim.lua("return vim.fn.win_getid(vim.fn.winnr('#'))")
        await screen.type("y")
        assert text_of(await ended(call)) == "notes.txt"
        assert await screen.nvim.lua("return vim.api.nvim_get_current_win()") == before
        await screen.hides("Allow this call?")


@pytest.mark.slow
async def test_the_frame_says_how(screen: Terminal, bridge: Bridge) -> None:
    """Beside the window keys are the text's: the frame says how to answer from there, inside by which key."""
    async with connect(bridge, "sessions") as client:
        call = asyncio.create_task(client.call_tool("nvim_risky", {}))
        outside = await screen.shows("<F5> yes", ":McpTools approve or deny", "CTRL-W w then y, n, ?")
        assert "once" not in outside
        await screen.type("i")
        await screen.shows("<F5> yes", "<Esc>:McpTools approve or deny")
        await screen.press("Escape")
        await screen.shows(" CTRL-W w then")
        await screen.command("split")
        await screen.shows(":McpTools approve look then y, n, ?")
        await screen.command("only")
        await screen.shows(" CTRL-W w then")
        await screen.press("C-w", "w")
        inside = await screen.shows("y once", "n deny", "N deny, why", "s session", "a always", "X never")
        assert "CTRL-W" not in inside
        await looked_at(screen)
        await screen.type("n")
        assert error_of(await ended(call))["code"] == "access_denied"


async def test_ones_own_call(screen: Terminal, bridge: Bridge) -> None:
    """A question for what the person typed themselves says so."""
    await screen.command("McpTools call risky")
    await screen.shows("Allow this call?", "client  you, by :McpTools call")
    await looked_at(screen)
    await screen.press("F5")
    await screen.shows("it ran")


@pytest.mark.slow
async def test_nothing_is_allowed_unseen(screen: Terminal, bridge: Bridge) -> None:
    """A yes to what was not on the screen shows more of it first; the frame says how much, and why not."""
    async with connect(bridge, "sessions") as client:
        lines = "\n".join(f"line {n}" for n in range(30))
        for act in (screen.type, None):
            await screen.hides("Allow this call?")
            call = asyncio.create_task(client.call_tool("nvim_risky", {"text": lines, "path": "a.txt"}))
            await screen.shows('path: "a.txt"', "line 3", "… 25 more lines")
            other = asyncio.create_task(client.call_tool("nvim_risky", {"n": 2}))
            await screen.shows("1 of 2")
            await looked_at(screen)
            before = await ran(screen)
            await (screen.command("McpTools approve look") if act else screen.type("ityped "))
            for shown, left in (("line 16", "again 1 of 2 … 12 more lines"), ("line 29", "press again")):
                await (act("y") if act else screen.press("F5"))
                await screen.shows(shown, left)
                assert await ran(screen) == before
            await (act("y") if act else screen.press("F5"))
            assert text_of(await ended(call)) == "it ran"
            await screen.shows("n: 2", "Allow this call?")
            await looked_at(screen)
            await screen.press("F5")
            assert text_of(await ended(other)) == "it ran"
        assert await screen.nvim.request("nvim_buf_get_lines", 0, 0, -1, False) == ["typed "]


@pytest.mark.slow
async def test_the_window_makes_way(screen: Terminal, bridge: Bridge) -> None:
    """What is opened while a question is there is seen beside it, and the question is seen whole."""
    question = ("Allow this call?", "tool    risky", "without arguments", "<F5> yes")
    await screen.nvim.lua("""
      mcp_tools.register({ name = 'poem', description = 'x', annotations = { read_only = true },
        execute = function(ctx) ctx('roses are red\\nviolets are blue') end })
      vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'the text' })
    """)
    async with connect(bridge, "sessions") as client:
        call = asyncio.create_task(client.call_tool("nvim_risky", {}))
        await screen.shows(*question)
        await screen.command("McpTools call poem")
        await screen.shows(
            "the text", *question, "call poem: done in", "\nroses are red", "\nviolets are blue"
        )
        await screen.command("McpTools status")
        await screen.shows(*question, "● ready", "Calls in flight  1")
        await screen.command("q")
        await screen.command("McpTools call test_ecko")
        await screen.shows("the text", *question, "Error (unknown_tool)")
        await looked_at(screen)
        await screen.command("McpTools deny")
        assert error_of(await ended(call))["code"] == "access_denied"
        await screen.hides("Allow this call?")
        await screen.command("only")
        lines = "\n".join(f"line {n}" for n in range(30))
        call = asyncio.create_task(client.call_tool("nvim_risky", {"text": lines}))
        await screen.shows("Allow this call? … 23 more lines")
        await screen.command("McpTools status")
        lower = await screen.shows(
            "Allow this call? … ", "tool    risky", "<F5> yes", "● ready", "Calls in flight  1"
        )
        assert "… 23 more lines" not in lower
        await screen.command("q")
        await screen.shows("Allow this call? … 23 more lines")
        await looked_at(screen)
        await screen.command("McpTools deny")
        assert error_of(await ended(call))["code"] == "access_denied"


@pytest.mark.slow
async def test_out_of_typing_and_back(screen: Terminal, bridge: Bridge) -> None:
    """Who goes to the window while typing has its keys there, in any size, and types on afterwards."""
    await screen.nvim.lua("vim.keymap.set('i', '<F6>', '<Plug>(mcp-tools-approval-focus)')")
    async with connect(bridge, "sessions") as client:
        await screen.type("ihello ")
        call = asyncio.create_task(client.call_tool("nvim_risky", {}))
        await screen.shows("Allow this call?")
        await looked_at(screen)
        await screen.press("F6")
        await screen.shows("y once", "n deny")
        await screen.nvim.wait_for("return vim.api.nvim_get_mode().mode == 'n'")
        await screen.tmux("resize-window", "-x", "70", "-y", "20")
        await screen.nvim.wait_for("return vim.o.columns == 70 and vim.b.mcp_tools_approval ~= nil")
        await screen.shows("y once", "n deny")
        await screen.type("y")
        assert text_of(await ended(call)) == "it ran"
        await screen.hides("Allow this call?")
        await screen.nvim.wait_for("return vim.api.nvim_get_mode().mode == 'i'")
        await screen.type("you")
        await screen.shows("hello you")

        call = asyncio.create_task(client.call_tool("nvim_risky", {"n": 2}))
        await screen.shows("n: 2")
        await looked_at(screen)
        await screen.press("F6")
        await screen.shows("y once", "n deny")
        await screen.press("C-w", "w")
        await screen.shows("CTRL-W w then")
        await screen.press("C-w", "w")
        await screen.shows("y once", "n deny")
        await screen.type("y")
        assert text_of(await ended(call)) == "it ran"
        await screen.hides("n: 2")
        assert (await screen.nvim.request("nvim_get_mode"))["mode"] == "n"  # typing was over before


@pytest.mark.slow
async def test_wherever_the_person_is(screen: Terminal, bridge: Bridge) -> None:
    """The window follows to another tab page and size, and comes in a terminal and over the command line."""
    async with connect(bridge, "sessions") as client:
        await screen.type(":echo 'typed")
        call = asyncio.create_task(client.call_tool("nvim_risky", {}))
        await screen.shows("Allow this call?", ":echo 'typed")
        await screen.press("C-c")
        await screen.command("tabnew")
        await screen.shows("Allow this call?", "[No Name]")
        await screen.tmux("resize-window", "-x", "60", "-y", "16")
        await screen.until(
            lambda text: "Allow this call?" in text and "╮" in text, "the window at its new place"
        )
        await screen.command("tabclose")
        await screen.shows("Allow this call?")
        await screen.command("terminal cat")
        await screen.type("i")
        await screen.nvim.wait_for("return vim.api.nvim_get_mode().mode == 't'")
        await screen.type("yes")
        await screen.shows("yes")
        assert await ran(screen) == 0
        await screen.press("F5")
        assert text_of(await ended(call)) == "it ran"
        await screen.hides("Allow this call?")
        await screen.press("C-\\", "C-n")

        await screen.type("q:")
        await screen.nvim.wait_for("return vim.fn.getcmdwintype() == ':'")
        call = asyncio.create_task(client.call_tool("nvim_risky", {}))
        await screen.nvim.wait_for("return probe.approval.current() ~= nil")
        await screen.command("q")
        await screen.shows("Allow this call?")
        await looked_at(screen)
        await screen.press("F5")
        assert text_of(await ended(call)) == "it ran"


@pytest.mark.slow
async def test_another_question_under_the_fingers(screen: Terminal, bridge: Bridge) -> None:
    """A yes that was begun before the question changed does not count for the next one."""
    async with connect(bridge, "sessions") as client:
        first = asyncio.create_task(client.call_tool("nvim_risky", {"n": 1}))
        await screen.shows("n: 1")
        second = asyncio.create_task(client.call_tool("nvim_risky", {"n": 2}))
        await screen.shows("1 of 2")
        await screen.type(":McpTools approve")
        first.cancel()
        await screen.shows("n: 2")
        await screen.press("Enter")
        await screen.shows("The question has just changed")
        assert await ran(screen) == 0
        await looked_at(screen)
        await screen.command("McpTools approve")
        assert text_of(await ended(second)) == "it ran"
        assert await ran(screen) == 1


@pytest.mark.slow
async def test_trust_and_audit(screen: Terminal, bridge: Bridge) -> None:
    """`:McpTools trust` shows and changes levels; `:McpTools audit` shows what was decided."""
    async with connect(bridge, "sessions") as client:
        call = asyncio.create_task(client.call_tool("nvim_risky", {}))
        await screen.shows("Allow this call?")
        await screen.command("McpTools approve always")
        assert text_of(await ended(call)) == "it ran"
        await screen.hides("Allow this call?")
        assert text_of(await client.call_tool("nvim_risky", {})) == "it ran"
        await screen.command("McpTools trust")
        await screen.shows("trusted    risky", "you trust it", "untrusted: asks")
        await screen.command("McpTools trust risky denied")
        await screen.shows("risky is now denied")
        assert error_of(await client.call_tool("nvim_risky", {}))["code"] == "access_denied"

        await screen.command("McpTools audit")
        await screen.shows("allow  risky  (user: always)  done", "(ledger)  failed")
        await screen.type(":McpTools trust ri")
        await screen.press("Tab")
        await screen.shows(":McpTools trust risky")
        await screen.press("C-c")


@pytest.mark.slow
async def test_the_cursor_moves_for_who_wants_that(screen: Terminal, bridge: Bridge) -> None:
    """With `ui.approval_focus` the window is entered from normal mode only, and is deaf for a moment."""
    await screen.nvim.lua("mcp_tools.setup({ ui = { approval_focus = true } })")
    entered = "return vim.b.mcp_tools_approval ~= nil"
    async with connect(bridge, "sessions") as client:
        await screen.type("ia")
        call = asyncio.create_task(client.call_tool("nvim_risky", {}))
        await screen.shows("Allow this call?")
        assert not await screen.nvim.lua(entered)
        await screen.press("Escape")
        await screen.command("McpTools deny")
        assert error_of(await ended(call))["code"] == "access_denied"
        await screen.hides("Allow this call?")

        call = asyncio.create_task(client.call_tool("nvim_risky", {}))
        await screen.nvim.wait_for(entered)
        await screen.type("yyy")
        await looked_at(screen, 700)
        assert await ran(screen) == 0
        await screen.type("y")
        assert text_of(await ended(call)) == "it ran"
        assert await screen.nvim.request("nvim_buf_get_lines", 0, 0, -1, False) == ["a"]


@pytest.mark.slow
async def test_what_would_change(screen: Terminal, bridge: Bridge) -> None:
    """A `preview` is shown, one that fails is said to have failed, and what is long is cut."""
    await screen.nvim.lua("""
      for name, preview in pairs({
        edits = function(args) return '-old\\n+' .. args.new end,
        fails = function() error('no diff') end,
      }) do
        mcp_tools.register({ name = name, description = name, needs_approval = true, preview = preview,
          execute = function(ctx) ctx('done') end })
      end
    """)
    async with connect(bridge, "sessions") as client:
        call = asyncio.create_task(client.call_tool("nvim_edits", {"new": "n\u200bew"}))
        await screen.shows("changes", "│ -old", "│ +n<U+200B>ew")
        await screen.press("F5")
        assert text_of(await ended(call)) == "done"
        await screen.hides("Allow this call?")
        long = {"lines": ["x" * 50] * 9000, "z": "y" * 1_000_000}
        call = asyncio.create_task(client.call_tool("nvim_fails", long))
        await screen.shows("arguments, CUT: 2 of 2 are too long to show completely", "its preview failed")
        await looked_at(screen)
        await screen.command("McpTools approve look")
        await screen.type("G")
        await screen.shows("… CUT")
        await screen.press("F5")
        assert text_of(await ended(call)) == "done"


@pytest.mark.slow
async def test_what_would_change_is_known_later(screen: Terminal, bridge: Bridge) -> None:
    """A preview that calls `again` is shown anew, and is to be read; an error ends question and call."""
    await screen.nvim.lua("""
      mcp_tools.register({ name = 'edits', description = 'edits', needs_approval = true,
        preview = function(_, again)
          _G.tell = again or tell
          return _G.diff or 'not known yet'
        end, execute = function(ctx) ctx('done') end })
    """)
    async with connect(bridge, "sessions") as client:
        call = asyncio.create_task(client.call_tool("nvim_edits", {}))
        await screen.shows("│ not known yet")
        await looked_at(screen)
        await screen.nvim.lua("_G.diff = ('-old\\n'):rep(30) .. '+new' tell()")
        await screen.shows("│ -old", "more lines")
        await screen.press("F5")
        await screen.shows("press again", "-old")
        await screen.press("F5")
        await screen.shows("press again", "│ +new")
        assert not call.done()
        await screen.press("F5")
        assert text_of(await ended(call)) == "done"

        await screen.nvim.lua("_G.diff = nil")
        call = asyncio.create_task(client.call_tool("nvim_edits", {}))
        await screen.shows("│ not known yet")
        await screen.nvim.lua("tell({ code = 'not_found', message = 'there is nothing to edit' })")
        assert error_of(await ended(call)) == {"code": "not_found", "message": "there is nothing to edit"}
        await screen.hides("Allow this call?")


async def test_late_approval(screen: Terminal, bridge: Bridge) -> None:
    """The approve key approves only what is on the screen; `:McpTools approve` asks again."""
    await screen.nvim.lua("mcp_tools.setup({ approval = { timeout = 1500 } })")
    async with connect(bridge, "sessions") as client:
        await client.call_tool("nvim_risky", {"path": "/outside/env.sh"})
        await client.call_tool("nvim_risky", {"n": 1})
        await screen.nvim.lua("mcp_tools.setup({ approval = { timeout = 20000 } })")
        await screen.press("F5")
        await screen.shows("no open question; `:McpTools approve`")
        await screen.command("McpTools approve")
        await screen.shows("Not answered in time", '2: /outside/env.sh (OUTSIDE the project)  risky  "mcp", ')
        await screen.type("2")
        await screen.press("Enter")
        await screen.shows(
            "Allow when it is called again?", "/outside/env.sh", "OUTSIDE", 'calls itself "mcp"'
        )
        assert await ran(screen) == 0
        await asyncio.sleep(0.6)
        await screen.type("y")
        await screen.hides("Allow when it is called again?")
        assert text_of(await client.call_tool("nvim_risky", {"path": "/outside/env.sh"})) == "it ran"
        call = asyncio.create_task(client.call_tool("nvim_risky", {"path": "/outside/env.sh"}))
        await screen.shows("Allow this call?")
        await looked_at(screen)
        await screen.command("McpTools deny")
        assert error_of(await ended(call))["code"] == "access_denied"


async def test_command_waits_for_the_answer(screen: Terminal, bridge: Bridge) -> None:
    """`mcp-tools call` reports that Neovim asks."""
    call = asyncio.create_task(Shell(bridge).run("call", "nvim_risky", '{"n": 1}'))
    await screen.shows("Allow this call?", 'calls itself "mcp-tools"')
    await asyncio.sleep(1.5)
    await screen.command("McpTools approve")
    assert await ended(call) == (0, "it ran\n", "waiting for the answer in Neovim\n")
