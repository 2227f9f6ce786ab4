"""A review at a real terminal: it is shown in the text, takes no keys, and its result reaches the agent."""

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
from tests.support.raw import Raw
from tests.support.results import error_of, text_of
from tests.support.terminal import Terminal, ended

pytestmark = terminal.needed

INIT = f"""
vim.opt.swapfile = false
_G.mcp_tools = require('mcp-tools')
mcp_tools.setup({{ tools = 'all', bridge = {{ python = [[{sys.executable}]] }} }})
vim.keymap.set({{ 'n', 'i', 't' }}, '<F5>', '<Plug>(mcp-tools-review-accept)')
vim.keymap.set({{ 'n', 'i', 't' }}, '<F6>', '<Plug>(mcp-tools-review-reject)')
"""

READ_FIRST = 0.5  # s; an answer to a new review may be meant for the one before

TEXT = "first\nsecond\nthird\nfourth\nfifth\nsixth\n"
EDITS = [
    {"search": "second\n", "replace": "a new second\nand one more\n"},
    {"search": "fourth\n", "replace": ""},
    {"search": "sixth", "replace": "the last"},
]


@pytest.fixture
def path(home: Home) -> Path:
    directory = home.make("project")
    (directory / ".git").mkdir()
    (directory / "text.txt").write_text(TEXT)
    return directory / "text.txt"


@pytest.fixture
async def screen(nvim_program: Path, home: Home, path: Path) -> AsyncIterator[Terminal]:
    arguments = (str(path),)
    async with terminal.opened(
        nvim_program, home, init_lua=INIT, arguments=arguments, cwd=path.parent
    ) as opened:
        await opened.nvim.wait_for("return mcp_tools.endpoint()", timeout=15_000)
        yield opened
        assert "Press ENTER" not in await opened.screen()


async def lines(screen: Terminal) -> list[str]:
    """The text of the file as it is in the editor."""
    return list(
        await screen.nvim.lua("return vim.api.nvim_buf_get_lines(vim.fn.bufnr('text.txt'), 0, -1, false)")
    )


def edit(client: Any, path: Path, edits: list[dict[str, str]]) -> asyncio.Task[Any]:
    return asyncio.create_task(client.call_tool("nvim_file_edit", {"path": str(path), "edits": edits}))


async def test_a_question_is_answered_hunk_by_hunk(screen: Terminal, bridge: Bridge, path: Path) -> None:
    """`r` in a question opens the review; the agent gets the rejected hunks with their reason."""
    async with connect(bridge, "sessions") as client:
        call = edit(client, path, EDITS)
        await screen.shows("Allow this call?", "file_edit")
        await screen.question_settled()
        await screen.command("McpTools approve look")
        await screen.type("r")
        await screen.shows(
            "review", "a new second", "and one more", "3 of 3 hunks left", "y accept", "n reject"
        )
        assert await lines(screen) == TEXT.splitlines()
        await screen.type("y")
        await screen.shows("2 of 3 hunks left")
        await screen.type("N")
        await screen.shows("Reason for the assistant")
        await screen.enter("fourth is needed")
        await screen.shows("1 of 3 hunks left", "rejected: fourth is needed")
        await screen.type("y")
        answer = text_of(await ended(call))
        changed = ["first", "a new second", "and one more", "third", "fourth", "fifth", "the last"]
        assert await lines(screen) == changed
        assert "text.txt: lines 2, 7 −2 +3, unsaved" in answer
        assert "rejected by the user: text.txt:4: fourth is needed" in answer
        await screen.hides("hunks left")
        await screen.type("u")
        await screen.nvim.wait_for("return vim.api.nvim_buf_line_count(0) == 6")
        assert await lines(screen) == TEXT.splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("begin", ["terminal cat", "new"])
async def test_a_review_is_entered_from_another_mode(
    screen: Terminal, bridge: Bridge, path: Path, begin: str
) -> None:
    """From Insert mode and Terminal mode to Normal mode, so that `y` is not text."""
    async with connect(bridge, "sessions") as client:
        await screen.command(begin)
        await screen.type("i")
        call = edit(client, path, EDITS[:1])
        await screen.shows("Allow this call?", "file_edit")
        await screen.question_settled()
        await screen.nvim.request("nvim_command", "McpTools review")
        await screen.shows("1 of 1 hunk", "a new second")
        assert (await screen.nvim.request("nvim_get_mode"))["mode"] == "n"
        await asyncio.sleep(READ_FIRST)
        await screen.type("y")
        assert text_of(await ended(call)).startswith("text.txt:2")
        assert (await lines(screen))[1] == "a new second"


@pytest.mark.slow
async def test_commands_open_and_accept_a_review(screen: Terminal, bridge: Bridge, path: Path) -> None:
    async with connect(bridge, "sessions") as client:
        call = edit(client, path, EDITS)
        await screen.shows("Allow this call?", "file_edit")
        await screen.question_settled()
        await screen.command("McpTools review")
        await screen.shows("3 of 3 hunks left", "a new second")
        await screen.type("?")
        await screen.shows("reject this hunk")
        await screen.type("x")
        await screen.hides("reject this hunk")
        if await screen.nvim.lua("return vim.fn.has('nvim-0.11')"):
            assert await lines(screen) == TEXT.splitlines(), "the key that closes the help does nothing else"
            await screen.command("McpTools approve")
            await screen.hides("hunks left")
            assert "rejected" not in text_of(await ended(call))
            assert (await lines(screen))[1:3] == ["a new second", "and one more"]
        else:
            await screen.command("undo")
            await screen.command("McpTools review all")
            await ended(call)


@pytest.mark.slow
async def test_reviews_wait_while_the_user_types(screen: Terminal, bridge: Bridge, path: Path) -> None:
    await screen.nvim.lua("mcp_tools.setup({ review = { when = 'ask' } })")
    async with connect(bridge, "sessions") as one, connect(bridge, "sessions") as two:
        await screen.type("ggOmine ")
        first = edit(one, path, EDITS[:1])
        await screen.shows("a new second", ":McpTools review")
        second = edit(two, path, EDITS[2:])
        await screen.shows("review 1 of 2")
        await screen.type("yna")
        await screen.nvim.wait_for("return vim.api.nvim_get_current_line() == 'mine yna'")
        assert await screen.nvim.lua("return mcp_tools.statusline()") == "2 reviews"
        await screen.press("F5")
        assert text_of(await ended(first)).startswith("text.txt")
        await screen.shows("the last")
        await screen.nvim.wait_for(
            "local now = vim.uv.hrtime() Shown = Shown or now return now - Shown > 400e6"
        )
        await screen.press("F6")
        assert error_of(await ended(second))["code"] == "access_denied"
        await screen.hides("1 hunk left")
        assert (await screen.nvim.request("nvim_get_mode"))["mode"] == "i"
        changed = ["mine yna", "first", "a new second", "and one more"]
        assert await lines(screen) == [*changed, *TEXT.splitlines()[2:]]
        assert await screen.nvim.lua("return mcp_tools.statusline()") == ""


async def review(screen: Terminal, client: Any, path: Path, edits: list[dict[str, str]]) -> asyncio.Task[Any]:
    """A call that changes the file, with the cursor in its review."""
    call = edit(client, path, edits)
    await screen.shows(":McpTools review", "hunks left")
    await screen.command("McpTools review")
    await screen.shows("y accept")
    return call


@pytest.mark.slow
async def test_a_changed_hunk_cannot_be_accepted(screen: Terminal, bridge: Bridge, path: Path) -> None:
    await screen.nvim.lua("mcp_tools.setup({ review = { when = 'ask' } })")
    async with connect(bridge, "sessions") as client:
        call = await review(screen, client, path, EDITS)
        await screen.type("cwmine")
        await screen.press("Escape")
        await screen.shows("changed meanwhile: n keeps this text, e shows the proposal")
        await screen.type("y")
        await screen.shows("its lines have changed: n keeps this text", "3 of 3 hunks left")
        await screen.type("u")
        await screen.hides("changed meanwhile")
        await screen.type("y")
        await screen.shows("2 of 3 hunks left")
        await screen.type("A")
        answer = text_of(await ended(call))
        assert "rejected" not in answer
        assert await lines(screen) == ["first", "a new second", "and one more", "third", "fifth", "the last"]


@pytest.mark.slow
async def test_a_deleted_file_is_not_written(screen: Terminal, bridge: Bridge, path: Path) -> None:
    await screen.nvim.lua("mcp_tools.setup({ review = { when = 'ask' } })")
    async with connect(bridge, "sessions") as client:
        call = await review(screen, client, path, EDITS[:2])
        path.unlink()
        await screen.type("A")
        await ended(call)
        assert await lines(screen) == ["first", "a new second", "and one more", "third", "fifth", "sixth"]
    assert not path.exists()


@pytest.mark.slow
async def test_a_disconnected_agents_review_closes(screen: Terminal, bridge: Bridge, path: Path) -> None:
    await screen.nvim.lua("mcp_tools.setup({ review = { when = 'ask' } })")
    async with connect(bridge, "sessions") as stays:
        async with Raw(bridge) as goes:
            arguments = {"path": str(path), "edits": EDITS[:1]}
            gone = asyncio.create_task(goes.stateless("file_edit", arguments))
            await screen.shows("a new second", "1 of 1 hunk left")
            waits = edit(stays, path, EDITS[2:])
            await screen.shows("review 1 of 2")
            gone.cancel()
        await screen.shows("1 of 1 hunk left", "the last")
        await screen.hides("a new second")
        assert await lines(screen) == TEXT.splitlines()
        await asyncio.sleep(READ_FIRST)
        await screen.command("McpTools review")
        await screen.shows("y accept")
        await screen.type("y")
        assert "rejected" not in text_of(await ended(waits))
    assert await lines(screen) == [*TEXT.splitlines()[:5], "the last"]
