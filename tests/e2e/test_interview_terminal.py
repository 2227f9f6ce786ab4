"""An interview at a terminal of 80 × 24: what is on the screen, where keys go, what the client is told."""

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

COLOUR = {"question": "Which colour?", "choices": ["red", "gr\u202een", "blue"], "default_choice": 1}
TOPPINGS = {"question": "Which toppings?", "choices": ["ham", "olives", "corn"], "multiselect": True}
WHY = {"question": "Why?\nIn a word."}


@pytest.fixture
async def screen(nvim_program: Path, home: Home) -> AsyncIterator[Terminal]:
    """A terminal whose Neovim has a bridge and the interview."""
    async with terminal.opened(nvim_program, home, init_lua=INIT) as opened:
        await opened.nvim.wait_for("return mcp_tools.endpoint()", timeout=15_000)
        yield opened
        assert "Press ENTER" not in await opened.screen()
        assert await opened.nvim.lua("return #vim.api.nvim_list_wins()") == 1


def asked(client: Any, *questions: dict[str, Any]) -> asyncio.Task[Any]:
    """A call of the tool that waits for its answers."""
    return asyncio.create_task(client.call_tool("nvim_ask_user", {"questions": list(questions)}))


async def answered(call: asyncio.Task[Any]) -> str:
    """The text that the client gets."""
    result = await ended(call)
    assert not result.is_error, result
    text: str = result.content[0].text
    return text


def mode_is(screen: Terminal, mode: str) -> Any:
    return screen.nvim.wait_for("return vim.api.nvim_get_mode().mode == ...", mode)


async def go_in(screen: Terminal, *texts: str) -> None:
    """Go to the window by a key, whose frame then has these texts."""
    await screen.press("F5")
    await screen.shows(*texts)


async def test_all_kinds_of_questions(screen: Terminal, bridge: Bridge) -> None:
    """Keys go to the text until the person goes to the window; there all kinds are answered."""
    async with connect(bridge, "sessions") as client:
        await screen.type("ihello ")
        call = asked(client, COLOUR, TOPPINGS, WHY)
        shown = await screen.shows(
            "Which colour?", "1 of 3", "(•) gr<U+202E>en", "( ) blue", "or something else"
        )
        assert 'a client called "mcp" asks' in shown
        assert "<F5> to answer" in shown
        await screen.type("j q")
        await screen.shows("hello j q")
        await go_in(screen, "<CR> next", "<Esc> cancel")
        await screen.enter("j")
        await screen.shows("Which toppings?", "2 of 3", "[ ] ham")
        await screen.type(" ")
        await screen.shows("[x] ham")
        await screen.type("3")
        await screen.shows("[x] corn")
        await screen.press("C-p")
        await screen.shows("Which colour?", "(•) blue")
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
            "Which colour?: blue\nWhich toppings?: ham, corn, cheese\nWhy?\nIn a word.: because ü\nso"
        )
        await screen.hides("Why?")
        await mode_is(screen, "i")
        await screen.type("!")
        await screen.shows("hello j q!")


@pytest.mark.slow
async def test_own_text_instead_of_a_choice(screen: Terminal, bridge: Bridge) -> None:
    """Nothing chosen is said in the frame; what is typed is the answer then."""
    async with connect(bridge, "sessions") as client:
        call = asked(client, {"question": "Which?", "choices": []}, {**COLOUR, "default_choice": None})
        await screen.shows("Which?", "<F5> to answer")
        await screen.command("McpTools answer")
        await mode_is(screen, "i")
        await screen.press("Enter")
        await screen.shows("Which colour?")
        await screen.enter("gg")
        await screen.shows("choose one, or type an answer")
        await screen.type("i")
        await mode_is(screen, "i")
        await screen.enter("violet")
        assert await answered(call) == "Which?: (no answer)\nWhich colour?: violet"


@pytest.mark.parametrize(
    "how", ["Escape", *(pytest.param(how, marks=pytest.mark.slow) for how in ("close", "field"))]
)
async def test_leaving_it(screen: Terminal, bridge: Bridge, how: str) -> None:
    """Who leaves it, by key or by closing the window, gives no answers; `q` only goes back to the text."""
    async with connect(bridge, "sessions") as client:
        call = asked(client, COLOUR)
        await screen.shows("Which colour?")
        await go_in(screen, "<CR> done")
        await screen.type("q")
        await screen.shows("<F5> to answer")
        assert not call.done()
        await go_in(screen, "<CR> done")
        if how == "field":
            await screen.type("i")
            await mode_is(screen, "i")
            await screen.press("Escape")
            await mode_is(screen, "n")
        await (screen.command("close") if how == "close" else screen.press("Escape"))
        assert await answered(call) == "The user closed the questions without answering."
        await screen.hides("Which colour?")


@pytest.mark.slow
async def test_one_after_the_other(screen: Terminal, bridge: Bridge) -> None:
    """A second interview waits for the first. One that its client cancels stays until the user leaves it."""
    async with connect(bridge, "sessions") as client:
        first = asked(client, COLOUR)
        await screen.shows("Which colour?")
        second = asked(client, TOPPINGS)
        await screen.shows("(1 more waiting)")
        await go_in(screen, "<CR> done")
        await screen.nvim.lua(CANCEL, "Which colour?")
        await screen.shows("The caller no longer waits")
        await screen.type("xq")  # not for the user's text
        shown = await screen.shows("Which toppings?", "<F5> to answer")
        assert "Which colour?" not in shown
        assert (await first).is_error
        await screen.type("only")
        await screen.press("Escape", "F5")
        await screen.shows("<CR> done")
        await screen.press("Enter")
        assert await answered(second) == "Which toppings?: (no answer)"


@pytest.mark.slow
async def test_it_outlives_other_windows(screen: Terminal, bridge: Bridge) -> None:
    """`:only`, another tab page and another size of the screen bring it back with what was typed so far."""
    async with connect(bridge, "sessions") as client:
        call = asked(client, WHY)
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
async def test_out_of_a_terminal(screen: Terminal, bridge: Bridge) -> None:
    """Who types in a terminal of the editor, where the agent may run, is there again when all is answered."""
    async with connect(bridge, "sessions") as client:
        await screen.command("terminal cat")
        await screen.type("i")
        await mode_is(screen, "t")
        call = asked(client, COLOUR, WHY)
        await screen.shows("Which colour?", "<F5> to answer")
        await screen.type("to cat")
        await screen.shows("to cat")
        await go_in(screen, "<CR> next")
        await screen.press("Enter")
        await mode_is(screen, "i")
        await screen.type("so")
        await screen.tmux("resize-window", "-x", "70", "-y", "20")
        await screen.shows("Why?", "so", "<CR> done")
        await mode_is(screen, "i")
        await screen.enter(" it is")
        assert await answered(call) == f"Which colour?: {COLOUR['choices'][1]}\nWhy?\nIn a word.: so it is"
        await mode_is(screen, "t")
        await screen.type(" again")
        await screen.shows("to cat again")


@pytest.mark.slow
async def test_focus_by_option(screen: Terminal, bridge: Bridge) -> None:
    """By `ui.interview_focus` it is entered in normal mode only; keys that were on their way do nothing."""
    await screen.nvim.lua("mcp_tools.setup({ ui = { interview_focus = true } })")
    async with connect(bridge, "sessions") as client:
        await screen.type("i")
        await mode_is(screen, "i")
        call = asked(client, COLOUR)
        await screen.shows("Which colour?", "<F5> to answer")
        call.cancel()
        await screen.hides("Which colour?")
        await screen.press("Escape")
        await mode_is(screen, "n")
        call = asked(client, COLOUR)
        await screen.shows("<CR> done")
        await screen.press("Escape")
        await asyncio.sleep(0.7)
        assert not call.done()
        await screen.press("Enter")
        assert (await answered(call)).startswith("Which colour?: ")


async def test_text_of_an_unfinished_answer(screen: Terminal, bridge: Bridge) -> None:
    """Text typed before and after the call ends is in the unnamed register."""
    async with connect(bridge, "sessions") as client:
        call = asked(client, WHY)
        await screen.shows("Why?")
        await go_in(screen, "<CR> done")
        await screen.type("because")
        await screen.nvim.lua(CANCEL, WHY["question"])
        await screen.shows("The caller no longer waits; your text is in register")
        await screen.type(" not")
        await screen.shows("because not")
        await screen.press("Escape")
        await mode_is(screen, "n")
        await screen.type("q")
        await screen.hides("Why?")
        assert await screen.nvim.lua("return vim.fn.getreg('\"')") == "because not"
        assert (await ended(call)).is_error


async def test_long_question(screen: Terminal, bridge: Bridge) -> None:
    """A question that does not fit is shown from its beginning."""
    lines = "\n".join(f"line {i}" for i in range(1, 27))
    async with connect(bridge, "sessions") as client:
        call = asked(client, {"question": lines, "choices": ["red", "blue"]})
        await screen.shows("line 1 ", "more lines")
        await go_in(screen, "line 1 ", "<CR> done")
        await screen.press("Tab")
        await screen.shows("( ) red")
        await screen.press("Enter")
        assert await answered(call) == f"{lines}: red"
