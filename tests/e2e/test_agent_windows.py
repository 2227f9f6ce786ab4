"""Agents in terminals of an editor that has a screen: modes, focus, and where a window opens."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support import terminal
from tests.support.nvim import Home
from tests.support.terminal import Terminal

pytestmark = [pytest.mark.every_nvim, terminal.needed]

INIT = """
_G.mcp_tools = require('mcp-tools')
mcp_tools.setup({
  bridge = { autostart = false },
  terminal = { commands = { mine = { 'sh', '-c', 'echo started; exec cat' } } },
})
"""

REVIEW = """
require('mcp-tools.core').get()
require('mcp-tools.editor.review').open({
  client = { name = 'mine' },
  key = 'a',
  title = 'a change',
  files = { { path = vim.fn.getcwd() .. '/a.txt', bufnr = vim.fn.bufnr('a.txt'), text = 'two\\n' } },
  on_end = function() end,
})
"""

MODE = "return vim.fn.mode(1) == ..."
WHERE = "return { vim.api.nvim_get_current_win(), vim.fn.mode(1) }"


@pytest.fixture
async def screen(nvim_program: Path, home: Home) -> AsyncIterator[Terminal]:
    project = home.make("project")
    (project / ".git").mkdir()
    (project / "a.txt").write_text("one\n")
    async with terminal.opened(nvim_program, home, init_lua=INIT, cwd=project, arguments=["a.txt"]) as opened:
        await opened.shows("one")
        await opened.command("McpTools terminal mine")
        await opened.shows("started")
        yield opened
        assert "Press ENTER" not in await opened.screen()


async def test_the_cursor_enters_terminal_mode_unless_the_option_is_off(screen: Terminal) -> None:
    await screen.nvim.wait_for(MODE, "t")
    await screen.press("C-\\", "C-n")
    await screen.type(":wincmd p")
    await screen.press("Enter")
    await screen.nvim.wait_for(MODE, "n")
    await screen.command("wincmd p")
    await screen.nvim.wait_for(MODE, "t")
    await screen.nvim.lua("mcp_tools.setup({ terminal = { auto_insert = false } })")
    await screen.press("C-\\", "C-n")
    await screen.command("McpTools terminal")
    await screen.command("McpTools terminal")
    await screen.nvim.wait_for("return vim.bo.buftype == 'terminal'")
    await screen.nvim.wait_for(MODE, "nt")


async def test_a_review_leaves_the_focus_in_the_terminal(screen: Terminal) -> None:
    await screen.nvim.wait_for(MODE, "t")
    before = await screen.nvim.lua(WHERE)
    await screen.nvim.lua(REVIEW)
    await screen.shows("a change")
    assert await screen.nvim.lua(WHERE) == before
    await screen.type("typed")
    await screen.shows("typed")
