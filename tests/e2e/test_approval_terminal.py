"""The approval question at a real terminal: what is on the screen, and where keys go."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

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
QUESTION = "Allow this call?"
LINES = "\n".join(f"line {n}" for n in range(30))


@pytest.fixture
async def screen(nvim_program: Path, home: Home) -> AsyncIterator[Terminal]:
    """A terminal whose Neovim has a bridge and the tools of tools.lua."""
    async with terminal.opened(nvim_program, home, init_lua=INIT) as opened:
        await opened.nvim.wait_for("return mcp_tools.endpoint()", timeout=15_000)
        yield opened
        assert "Press ENTER" not in await opened.screen()


def runs(screen: Terminal) -> Any:
    """How often the tool `risky` has run."""
    return screen.nvim.lua("return Seen.late")


async def ask(
    screen: Terminal, client: Client, *texts: str, tool: str = "risky", **arguments: Any
) -> asyncio.Task[Any]:
    """Calls a tool, and waits until its question with `texts` can be answered."""
    await screen.hides(QUESTION)
    call = asyncio.create_task(client.call_tool(f"nvim_{tool}", arguments))
    await screen.shows(QUESTION, *texts)
    await screen.question_settled()
    return call


async def allowed(call: asyncio.Task[Any], result: str = "it ran") -> None:
    assert text_of(await ended(call)) == result


async def denied(call: asyncio.Task[Any]) -> str:
    """The message of a call that was denied."""
    error = error_of(await ended(call))
    assert error["code"] == "access_denied"
    return error["message"]


async def test_keys_go_to_the_text_while_the_question_is_shown(screen: Terminal, bridge: Bridge) -> None:
    text = 'first\nclient  calls itself "you"'
    arguments = {"path": "notes.txt", "text": text, "odd": "a\u202eb\u200bc\x07"}
    async with connect(bridge, "sessions") as client:
        await screen.type("iyes ")
        call = asyncio.create_task(client.call_tool("nvim_risky", arguments))
        await screen.shows(QUESTION)
        await screen.type("yna")
        call_texts = (
            "tool    risky",
            "tools.lua",
            'client  calls itself "mcp"',
            "reason  it is marked as destructive",
        )
        await screen.shows("yes yna", *call_texts, "/notes.txt", '"a<U+202E>b<U+200B>c<U+0007>"')
        await screen.shows("text of 2 lines", '│ client  calls itself "you"', ":McpTools approve")
        assert await screen.nvim.request("nvim_buf_get_lines", 0, 0, -1, False) == ["yes yna"]
        assert (await screen.nvim.request("nvim_get_mode"))["mode"] == "i"
        await screen.press("Escape")
        await screen.type("yyp")
        await screen.nvim.wait_for("return vim.api.nvim_buf_line_count(0) == 2")
        assert await runs(screen) == 0
        await screen.command("McpTools approve")
        await allowed(call)
        await screen.hides(QUESTION)


@pytest.mark.slow
async def test_keys_inside_the_window_answer(screen: Terminal, bridge: Bridge) -> None:
    """`q` leaves the question open; closing the window denies it."""

    async def enter() -> asyncio.Task[Any]:
        call = await ask(screen, client, "without arguments")
        await screen.command("McpTools approve look")
        return call

    async with connect(bridge, "sessions") as client:
        call = await enter()
        await screen.type("q")
        await screen.nvim.wait_for("return vim.b.mcp_tools_approval == nil")
        await screen.shows(QUESTION)
        await screen.command("McpTools approve look")
        await screen.type("y")
        await allowed(call)
        call = await enter()
        await screen.type("n")
        await denied(call)
        call = await enter()
        await screen.command("close")
        await denied(call)
        await screen.shows("risky was denied: its window was closed")
        assert await runs(screen) == 1
        call = await enter()
        await screen.type("s")
        await allowed(call)
        assert text_of(await client.call_tool("nvim_risky", {})) == "it ran"
    async with connect(bridge, "sessions") as client:
        call = await enter()
        await screen.type("N")
        await screen.shows("Reason for the assistant")
        await screen.enter("wrong file")
        assert "wrong file" in await denied(call)
        call = await enter()
        await screen.type("X")
        await denied(call)
        assert "always denies it" in error_of(await client.call_tool("nvim_risky", {}))["message"]
        await screen.hides(QUESTION)


@pytest.mark.slow
async def test_an_approved_tool_runs_in_the_users_window(screen: Terminal, bridge: Bridge) -> None:
    """Also when the answer was given inside the question's window."""
    await screen.nvim.lua("""
      mcp_tools.register({ name = 'here', description = 'x', needs_approval = true,
        execute = function(ctx) ctx(vim.fs.basename(vim.api.nvim_buf_get_name(0))) end })
    """)
    await screen.command("edit notes.txt | split")
    async with connect(bridge, "sessions") as client:
        call = await ask(screen, client, tool="here")
        await screen.command("McpTools approve look")
        await screen.shows("y once")
        before = await screen.nvim.lua("return vim.fn.win_getid(vim.fn.winnr('#'))")
        await screen.type("y")
        await allowed(call, "notes.txt")
        assert await screen.nvim.lua("return vim.api.nvim_get_current_win()") == before
        await screen.hides(QUESTION)


@pytest.mark.slow
async def test_the_frame_names_the_keys_that_answer(screen: Terminal, bridge: Bridge) -> None:
    async with connect(bridge, "sessions") as client:
        call = asyncio.create_task(client.call_tool("nvim_risky", {}))
        outside = await screen.shows("<F5> yes", ":McpTools approve or deny", "<C-W>w then y, n, ?")
        assert "once" not in outside
        await screen.type("i")
        await screen.shows("<F5> yes", "<Esc>:McpTools approve or deny")
        await screen.press("Escape")
        await screen.shows(" <C-W>w then")
        await screen.command("split")
        await screen.shows(":McpTools approve look then y, n, ?")
        await screen.command("only")
        await screen.shows(" <C-W>w then")
        await screen.press("C-w", "w")
        inside = await screen.shows("y once", "n deny", "N reason", "s session", "a always all", "? keys")
        assert "CTRL-W" not in inside
        await screen.question_settled()
        await screen.type("n")
        await denied(call)


@pytest.mark.slow
async def test_the_frame_names_the_way_to_a_review_and_the_help_the_usual_answers_first(
    screen: Terminal, bridge: Bridge
) -> None:
    await screen.nvim.lua("vim.keymap.set({ 'n', 't' }, '<F6>', '<Plug>(mcp-tools-deny)')")
    path = Path(await screen.nvim.lua("return vim.uv.cwd()")) / "notes.txt"
    path.write_text("one\n")
    edits = [{"old_text": "one", "new_text": "two"}]
    async with connect(bridge, "sessions") as client:
        call = await ask(screen, client, tool="file_edit", path=str(path), edits=edits)
        await screen.shows("<F5> yes", "<F6> no", ":McpTools review by hunk")
        await screen.command("terminal cat")
        await screen.type("i")
        await screen.shows("<F5> yes", "<F6> no", r"<C-\><C-N>:McpTools review by hunk")
        await screen.press("C-\\", "C-n")
        await screen.command("McpTools approve look")
        await screen.type("?")
        help_text = await screen.shows("show the keys")
        keys = re.findall(r"│ +(\S|<Esc>) {2,}\w", help_text)
        assert keys == ["y", "r", "n", "N", "s", "a", "X", "?"], help_text
        await screen.type("q")
        await screen.hides("show the keys")
        await screen.type("n")
        await denied(call)


async def test_the_question_for_the_users_own_call_says_so(screen: Terminal, bridge: Bridge) -> None:
    await screen.command("McpTools call risky")
    await screen.shows(QUESTION, "client  you, by :McpTools call")
    await screen.question_settled()
    await screen.press("F5")
    await screen.shows("it ran")


@pytest.mark.slow
async def test_a_yes_scrolls_until_everything_was_shown(screen: Terminal, bridge: Bridge) -> None:
    """Only then it allows the call; by the mapping from outside, and by the key in the window."""
    async with connect(bridge, "sessions") as client:
        for inside in (True, False):
            call = await ask(
                screen, client, 'path: "a.txt"', "line 3", "… 25 more lines", text=LINES, path="a.txt"
            )
            other = asyncio.create_task(client.call_tool("nvim_risky", {"n": 2}))
            await screen.shows("1 of 2")
            before = await runs(screen)
            await (screen.command("McpTools approve look") if inside else screen.type("ityped "))
            for shown, left in (("line 16", "again 1 of 2 … 12 more lines"), ("line 29", "press again")):
                await (screen.type("y") if inside else screen.press("F5"))
                await screen.shows(shown, left)
                assert await runs(screen) == before
            await (screen.type("y") if inside else screen.press("F5"))
            await allowed(call)
            await screen.shows("n: 2", QUESTION)
            await screen.question_settled()
            await screen.press("F5")
            await allowed(other)
        assert await screen.nvim.request("nvim_buf_get_lines", 0, 0, -1, False) == ["typed "]


@pytest.mark.slow
async def test_other_windows_open_beside_the_question(screen: Terminal, bridge: Bridge) -> None:
    question = (QUESTION, "tool    risky", "without arguments", "<F5> yes")
    await screen.nvim.lua("""
      mcp_tools.register({ name = 'poem', description = 'x', annotations = { read_only = true },
        execute = function(ctx) ctx('roses are red\\nviolets are blue') end })
      vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'the text' })
    """)
    async with connect(bridge, "sessions") as client:
        call = await ask(screen, client, *question)
        await screen.command("McpTools call poem")
        await screen.shows(*question, "call poem: done in", "\nroses are red", "\nviolets are blue")
        await screen.type("q")
        await screen.shows("the text", *question)
        await screen.command("McpTools status")
        await screen.shows(*question, "● ready", "Calls in flight  1")
        await screen.command("q")
        await screen.command("McpTools call test_ecko")
        await screen.shows(*question, "Error (unknown_tool)")
        await screen.type("q")
        await screen.shows("the text", *question)
        await screen.command("McpTools deny")
        await denied(call)
        await screen.hides(QUESTION)
        await screen.command("only")

        call = await ask(screen, client, "… 23 more lines", text=LINES)
        await screen.command("McpTools status")
        await screen.shows(
            f"{QUESTION} … 23 more lines", "tool    risky", "<F5> yes", "● ready", "Calls in flight  1"
        )
        await screen.command("q")
        await screen.command("McpTools deny")
        await denied(call)


@pytest.mark.slow
async def test_answering_while_typing_returns_to_insert_mode(screen: Terminal, bridge: Bridge) -> None:
    await screen.nvim.lua("vim.keymap.set('i', '<F6>', '<Plug>(mcp-tools-approval-focus)')")
    async with connect(bridge, "sessions") as client:
        await screen.type("ihello ")
        call = await ask(screen, client)
        await screen.press("F6")
        await screen.shows("y once", "n deny")
        await screen.nvim.wait_for("return vim.api.nvim_get_mode().mode == 'n'")
        await screen.tmux("resize-window", "-x", "70", "-y", "20")
        await screen.nvim.wait_for("return vim.o.columns == 70 and vim.b.mcp_tools_approval ~= nil")
        await screen.shows("y once", "n deny")
        await screen.type("y")
        await allowed(call)
        await screen.hides(QUESTION)
        await screen.nvim.wait_for("return vim.api.nvim_get_mode().mode == 'i'")
        await screen.type("you")
        await screen.shows("hello you")

        call = await ask(screen, client, "n: 2", n=2)
        await screen.press("F6")
        await screen.shows("y once", "n deny")
        await screen.press("C-w", "w")
        await screen.shows("<C-W>w then")
        await screen.press("C-w", "w")
        await screen.shows("y once", "n deny")
        await screen.type("y")
        await allowed(call)
        await screen.hides("n: 2")
        # The user had left insert mode before answering.
        assert (await screen.nvim.request("nvim_get_mode"))["mode"] == "n"


@pytest.mark.slow
async def test_the_window_follows_to_tab_pages_sizes_and_modes(screen: Terminal, bridge: Bridge) -> None:
    async with connect(bridge, "sessions") as client:
        await screen.type(":echo 'typed")
        call = asyncio.create_task(client.call_tool("nvim_risky", {}))
        await screen.shows(QUESTION, ":echo 'typed")
        await screen.press("C-c")
        await screen.command("tabnew")
        await screen.shows(QUESTION, "[No Name]")
        await screen.tmux("resize-window", "-x", "60", "-y", "16")
        await screen.shows(QUESTION, "╮")
        await screen.command("tabclose")
        await screen.shows(QUESTION)
        await screen.command("terminal cat")
        await screen.type("i")
        await screen.nvim.wait_for("return vim.api.nvim_get_mode().mode == 't'")
        await screen.type("yes")
        await screen.shows("yes")
        assert await runs(screen) == 0
        await screen.press("F5")
        await allowed(call)
        await screen.hides(QUESTION)
        await screen.press("C-\\", "C-n")

        await screen.type("q:")
        await screen.nvim.wait_for("return vim.fn.getcmdwintype() == ':'")
        call = asyncio.create_task(client.call_tool("nvim_risky", {}))
        await screen.nvim.wait_for("return probe.approval.current() ~= nil")
        await screen.command("q")
        await screen.shows(QUESTION)
        await screen.question_settled()
        await screen.press("F5")
        await allowed(call)


@pytest.mark.slow
async def test_an_answer_does_not_count_for_the_next_question(screen: Terminal, bridge: Bridge) -> None:
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
        assert await runs(screen) == 0
        await screen.question_settled()
        await screen.command("McpTools approve")
        await allowed(second)
        assert await runs(screen) == 1


@pytest.mark.slow
async def test_commands_show_and_change_decisions(screen: Terminal, bridge: Bridge) -> None:
    """`:McpTools trust` and `:McpTools audit`."""
    async with connect(bridge, "sessions") as client:
        call = await ask(screen, client)
        await screen.command("McpTools approve always")
        await allowed(call)
        await screen.hides(QUESTION)
        assert text_of(await client.call_tool("nvim_risky", {})) == "it ran"
        await screen.command("McpTools trust")
        await screen.shows("trusted    risky", "you trust it", "untrusted: asks")
        await screen.command("McpTools trust risky denied")
        await screen.shows("risky is now denied")
        assert error_of(await client.call_tool("nvim_risky", {}))["code"] == "access_denied"
        await screen.command("McpTools audit")
        log = await screen.shows("allow  risky  (user: always)", ": done in", "deny   risky  (ledger)")
        assert "the user always denies it, session" in log
        assert "Continue without" not in log
        await screen.type(":McpTools trust ri")
        await screen.press("Tab")
        await screen.shows(":McpTools trust risky")
        await screen.press("C-c")


@pytest.mark.slow
async def test_approval_focus_enters_the_window_from_normal_mode(screen: Terminal, bridge: Bridge) -> None:
    """Keys that follow at once are ignored."""
    await screen.nvim.lua("mcp_tools.setup({ ui = { approval_focus = true } })")
    entered = "return vim.b.mcp_tools_approval ~= nil"
    async with connect(bridge, "sessions") as client:
        await screen.type("ia")
        call = await ask(screen, client)
        assert not await screen.nvim.lua(entered)
        await screen.press("Escape")
        await screen.command("McpTools deny")
        await denied(call)
        await screen.hides(QUESTION)
        call = asyncio.create_task(client.call_tool("nvim_risky", {}))
        await screen.nvim.wait_for(entered)
        await screen.type("yyy")
        await screen.question_settled(700)
        assert await runs(screen) == 0
        await screen.type("y")
        await allowed(call)
        assert await screen.nvim.request("nvim_buf_get_lines", 0, 0, -1, False) == ["a"]


@pytest.mark.slow
async def test_a_preview_is_shown_and_long_arguments_are_cut(screen: Terminal, bridge: Bridge) -> None:
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
        call = await ask(screen, client, "changes", "│ -old", "│ +n<U+200B>ew", tool="edits", new="n\u200bew")
        await screen.press("F5")
        await allowed(call, "done")
        long: dict[str, Any] = {"lines": ["x" * 50] * 9000, "z": "y" * 1_000_000}
        call = await ask(
            screen, client, "CUT: 2 of 2 are too long", "its preview failed", tool="fails", **long
        )
        await screen.command("McpTools approve look")
        await screen.type("G")
        await screen.shows("… CUT")
        await screen.press("F5")
        await allowed(call, "done")


@pytest.mark.slow
async def test_a_preview_can_change_later_or_end_the_call(screen: Terminal, bridge: Bridge) -> None:
    await screen.nvim.lua("""
      mcp_tools.register({ name = 'edits', description = 'edits', needs_approval = true,
        preview = function(_, again)
          _G.show_again = again or show_again
          return _G.diff or 'not known yet'
        end, execute = function(ctx) ctx('done') end })
    """)
    async with connect(bridge, "sessions") as client:
        call = await ask(screen, client, "│ not known yet", tool="edits")
        await screen.nvim.lua("_G.diff = ('-old\\n'):rep(30) .. '+new' show_again()")
        await screen.shows("│ -old", "more lines")
        await screen.press("F5")
        await screen.shows("press again", "-old")
        await screen.press("F5")
        await screen.shows("press again", "│ +new")
        assert not call.done()
        await screen.press("F5")
        await allowed(call, "done")
        await screen.nvim.lua("_G.diff = nil")
        call = await ask(screen, client, "│ not known yet", tool="edits")
        await screen.nvim.lua("show_again({ code = 'not_found', message = 'there is nothing to edit' })")
        assert error_of(await ended(call)) == {"code": "not_found", "message": "there is nothing to edit"}
        await screen.hides(QUESTION)


@pytest.mark.slow
async def test_the_command_reports_that_neovim_asks(screen: Terminal, bridge: Bridge) -> None:
    call = asyncio.create_task(Shell(bridge).run("call", "nvim_risky", '{"n": 1}'))
    await screen.shows(QUESTION, 'calls itself "mcp-tools"')
    await asyncio.sleep(1.5)
    await screen.command("McpTools approve")
    assert await ended(call) == (0, "it ran\n", "waiting for the answer in Neovim\n")
