"""An interview at a terminal of 80 × 24: what is on the screen, where keys go, and the client's result."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import terminal
from tests.support.bridge import Bridge, connect
from tests.support.nvim import Home
from tests.support.terminal import Terminal, ended

pytestmark = terminal.needed

INIT = f"""
_G.mcp_tools = require('mcp-tools')
mcp_tools.setup({{ bridge = {{ python = [[{sys.executable}]] }}, tools = {{ 'ask_user' }} }})
vim.keymap.set({{ 'n', 'i', 't' }}, '<F5>', '<Plug>(mcp-tools-answer)')
"""

CANCEL = """
for _, call in ipairs(probe.executor():pending()) do
  if call.args.questions[1].question == ... then
    call:cancel('user')
  end
end
"""

COLOR = {"question": "Which color?", "choices": ["red", "gr\u202een", "blue"], "default_choice": 1}
TOPPINGS = {"question": "Which toppings?", "choices": ["ham", "olives", "corn"], "multiselect": True}
WHY = {"question": "Why?\nIn a word."}


@pytest.fixture
async def screen(nvim_program: Path, home: Home) -> AsyncIterator[Terminal]:
    async with terminal.opened(nvim_program, home, init_lua=INIT) as opened:
        await opened.nvim.wait_for("return mcp_tools.endpoint()", timeout=15_000)
        yield opened
        assert "Press ENTER" not in await opened.screen()
        assert await opened.nvim.lua("return #vim.api.nvim_list_wins()") == 1


def ask(client: Any, *questions: dict[str, Any]) -> asyncio.Task[Any]:
    """A call of the tool that waits for its answers."""
    return asyncio.create_task(client.call_tool("nvim_ask_user", {"questions": list(questions)}))


async def answered(call: asyncio.Task[Any]) -> str:
    result = await ended(call)
    assert not result.is_error, result
    return result.content[0].text


def mode_is(screen: Terminal, mode: str) -> Any:
    return screen.nvim.wait_for("return vim.api.nvim_get_mode().mode == ...", mode)


async def enter_window(screen: Terminal, *texts: str) -> None:
    """Enters the window by a key; its frame then has these texts."""
    await screen.press("F5")
    await screen.shows(*texts)


async def test_the_user_answers_every_kind_of_question(screen: Terminal, bridge: Bridge) -> None:
    async with connect(bridge, "sessions") as client:
        await screen.type("ihello ")
        call = ask(client, COLOR, TOPPINGS, WHY)
        shown = await screen.shows(
            "Which color?", "1 of 3", "(•) gr<U+202E>en", "( ) blue", "or something else"
        )
        assert 'a client called "mcp" asks' in shown
        assert "<F5> to answer" in shown
        await screen.type("j q")
        await screen.shows("hello j q")
        await enter_window(screen, "<CR> next", "X cancel")
        await screen.enter("j")
        await screen.shows("Which toppings?", "2 of 3", "[ ] ham", "? keys", "q later", "X cancel")
        await screen.type(" ")
        await screen.shows("[x] ham")
        await screen.type("3")
        await screen.shows("[x] corn")
        await screen.press("C-p")
        await screen.shows("Which color?", "(•) blue")
        await screen.press("Enter")
        await screen.shows("[x] ham", "[ ] olives", "[x] corn")
        await screen.press("Tab", "Tab", "Tab")
        await mode_is(screen, "i")
        await screen.enter("cheese")
        await screen.shows("Why?", "In a word.", "3 of 3", "your answer", "<CR> done")
        await screen.type("because ü")
        await screen.press("C-j")
        await screen.enter("so")
        assert await answered(call) == (
            "Which color?: blue\nWhich toppings?: ham, corn, cheese\nWhy?\nIn a word.: because ü\nso"
        )
        await screen.hides("Why?")
        await mode_is(screen, "i")
        await screen.type("!")
        await screen.shows("hello j q!")


@pytest.mark.slow
async def test_typed_text_replaces_a_choice(screen: Terminal, bridge: Bridge) -> None:
    async with connect(bridge, "sessions") as client:
        call = ask(client, {"question": "Which?", "choices": []}, {**COLOR, "default_choice": None})
        await screen.shows("Which?", "<F5> to answer")
        await screen.command("McpTools answer")
        await mode_is(screen, "i")
        await screen.press("Enter")
        await screen.shows("Which color?")
        await screen.enter("gg")
        await screen.shows("choose one, or type an answer")
        await screen.type("i")
        await mode_is(screen, "i")
        await screen.enter("violet")
        assert await answered(call) == "Which?: (no answer)\nWhich color?: violet"


@pytest.mark.parametrize(
    "how", ["X", *(pytest.param(how, marks=pytest.mark.slow) for how in ("close", "field"))]
)
async def test_leaving_the_window_gives_no_answers(screen: Terminal, bridge: Bridge, how: str) -> None:
    async with connect(bridge, "sessions") as client:
        call = ask(client, COLOR)
        await screen.shows("Which color?")
        await enter_window(screen, "<CR> done")
        await screen.press("q" if how == "close" else "Escape")
        await screen.shows("<F5> to answer")
        assert not call.done()
        await enter_window(screen, "<CR> done")
        if how == "field":  # where X deletes a character
            await screen.type("ifew")
            await screen.shows("few", "<CR> done")
            await screen.press("Escape")
            await mode_is(screen, "n")
            assert "X cancel" not in await screen.shows("q later")
            await screen.press("X")
            await screen.shows("fw")
            assert not call.done()
        await (screen.press("X") if how == "X" else screen.command("close"))
        assert await answered(call) == "The user closed the questions without answering."
        await screen.hides("Which color?")


@pytest.mark.slow
async def test_a_second_interview_waits_for_the_first(screen: Terminal, bridge: Bridge) -> None:
    async with connect(bridge, "sessions") as client:
        first = ask(client, COLOR)
        await screen.shows("Which color?")
        second = ask(client, TOPPINGS)
        await screen.shows("(1 more waiting)")
        await enter_window(screen, "<CR> done")
        await screen.nvim.lua(CANCEL, "Which color?")
        await screen.shows("The caller no longer waits")
        await screen.type("xq")  # not for the user's text
        shown = await screen.shows("Which toppings?", "<F5> to answer")
        assert "Which color?" not in shown
        assert (await first).is_error
        await screen.type("only")
        await screen.press("Escape", "F5")
        await screen.shows("<CR> done")
        await screen.press("Enter")
        assert await answered(second) == "Which toppings?: (no answer)"


@pytest.mark.slow
async def test_typed_text_survives_other_windows(screen: Terminal, bridge: Bridge) -> None:
    async with connect(bridge, "sessions") as client:
        call = ask(client, WHY)
        await screen.shows("Why?")
        await screen.press("F5")
        await screen.type("text so far")
        await screen.press("Escape")
        await screen.type("q")
        await screen.command("only")
        await screen.shows("Why?", "text so far")
        await screen.command("tabnew")
        await screen.shows("Why?", "text so far")
        await screen.tmux("resize-window", "-x", "60", "-y", "16")
        await screen.shows("Why?", "text so far")
        await screen.command("tabonly")
        await screen.press("F5")
        await screen.enter("!")
        assert (await answered(call)).endswith(": text so far!")


@pytest.mark.slow
async def test_the_user_returns_to_terminal_mode_after_answering(screen: Terminal, bridge: Bridge) -> None:
    async with connect(bridge, "sessions") as client:
        await screen.command("terminal cat")
        await screen.type("i")
        await mode_is(screen, "t")
        call = ask(client, COLOR, WHY)
        await screen.shows("Which color?", "<F5> to answer")
        await screen.type("to cat")
        await screen.shows("to cat")
        await enter_window(screen, "<CR> next")
        await screen.press("Enter")
        await mode_is(screen, "i")
        await screen.type("so")
        await screen.tmux("resize-window", "-x", "70", "-y", "20")
        await screen.shows("Why?", "so", "<CR> done")
        await mode_is(screen, "i")
        await screen.enter(" it is")
        assert await answered(call) == f"Which color?: {COLOR['choices'][1]}\nWhy?\nIn a word.: so it is"
        await mode_is(screen, "t")
        await screen.type(" again")
        await screen.shows("to cat again")


@pytest.mark.slow
async def test_interview_focus_enters_the_window_from_normal_mode(screen: Terminal, bridge: Bridge) -> None:
    await screen.nvim.lua("mcp_tools.setup({ ui = { interview_focus = true } })")
    async with connect(bridge, "sessions") as client:
        await screen.type("i")
        await mode_is(screen, "i")
        call = ask(client, COLOR)
        await screen.shows("Which color?", "<F5> to answer")
        call.cancel()
        await screen.hides("Which color?")
        await screen.press("Escape")
        await mode_is(screen, "n")
        call = ask(client, COLOR)
        await screen.shows("<CR> done")
        await screen.press("Escape")
        await asyncio.sleep(0.7)
        assert not call.done()
        await screen.press("Enter")
        assert (await answered(call)).startswith("Which color?: ")


@pytest.mark.slow
async def test_unfinished_text_is_in_the_unnamed_register(screen: Terminal, bridge: Bridge) -> None:
    """Also what is typed after the call has ended."""
    async with connect(bridge, "sessions") as client:
        call = ask(client, WHY)
        await screen.shows("Why?")
        await enter_window(screen, "<CR> done")
        await screen.type("because")
        await screen.nvim.lua(CANCEL, WHY["question"])
        await screen.shows("The caller no longer waits")
        await screen.type(" not")
        await screen.shows("because not")
        await screen.press("Escape")
        await mode_is(screen, "n")
        await screen.type("q")
        await screen.hides("Why?")
        assert await screen.nvim.lua("return vim.fn.getreg('\"')") == "because not"
        assert (await ended(call)).is_error


@pytest.mark.slow
async def test_a_long_question_is_shown_from_its_beginning(screen: Terminal, bridge: Bridge) -> None:
    lines = "\n".join(f"line {i}" for i in range(1, 27))
    async with connect(bridge, "sessions") as client:
        call = ask(client, {"question": lines, "choices": ["red", "blue"]})
        await screen.shows("line 1 ", "more lines")
        await enter_window(screen, "line 1 ", "<CR> done")
        await screen.press("Tab")
        await screen.shows("( ) red")
        await screen.press("Enter")
        assert await answered(call) == f"{lines}: red"
