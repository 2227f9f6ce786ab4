"""A tool shows a file at a terminal of 80 × 24: the user's typing is not interrupted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import terminal
from tests.support.nvim import Home, Spawn
from tests.support.terminal import Terminal

pytestmark = terminal.needed

INIT = """
_G.mcp_tools = require('mcp-tools')
mcp_tools.setup({ bridge = { autostart = false }, tools = { 'editor_open', 'editor_notify' } })
vim.opt.autoread = false
"""

CALL = """
local name, args = ...
Answer = nil
mcp_tools.call(name, args, function(result, err)
  Answer = { result = result, err = err }
end)
"""


@pytest.fixture
def project(home: Home) -> Path:
    directory = home.make("project")
    (directory / ".git").mkdir()
    for name in ("one", "two"):
        (directory / f"{name}.txt").write_text("".join(f"{name} {number}\n" for number in range(1, 101)))
    return directory


@pytest.fixture
async def screen(nvim_program: Path, home: Home, project: Path) -> AsyncIterator[Terminal]:
    async with terminal.opened(
        nvim_program, home, init_lua=INIT, cwd=project, arguments=["one.txt"]
    ) as opened:
        await opened.shows("one 1")
        yield opened
        screen = await opened.screen()
        for prompt in ("Press ENTER", "ATTENTION", "W11", "W12", "E325"):
            assert prompt not in screen


async def call(screen: Terminal, name: str, **args: Any) -> dict[str, Any]:
    await screen.nvim.lua(CALL, name, args)
    await screen.nvim.wait_for("return Answer")
    assert await screen.nvim.lua("return Answer.err") is None
    return await screen.nvim.lua("return Answer.result")


async def test_in_normal_mode_the_users_window_shows_it_and_ctrl_o_leads_back(screen: Terminal) -> None:
    shown = await call(screen, "editor_open", path="two.txt", line=60)
    assert (shown["entered"], shown["line"]) == (True, 60)
    assert "two 60" in await screen.shows("two 60")
    await screen.press("C-o")
    await screen.shows("one 1")


async def test_in_insert_mode_another_window_shows_it(screen: Terminal) -> None:
    await screen.type("ihello ")
    await screen.nvim.wait_for("return vim.api.nvim_get_mode().mode == 'i'")
    shown = await call(screen, "editor_open", path="two.txt", line=60)
    assert shown["entered"] is False
    await screen.type("world")
    await screen.shows("hello world", "two 60", "-- INSERT --")


async def test_in_a_terminal_another_window_shows_it(screen: Terminal) -> None:
    await screen.command("split | terminal cat")
    await screen.type("i")
    await screen.nvim.wait_for("return vim.api.nvim_get_mode().mode == 't'")
    await call(screen, "editor_open", path="two.txt", line=60)
    await screen.type("for cat")
    await screen.shows("for cat", "two 60")
    assert (await screen.nvim.request("nvim_get_mode"))["mode"] == "t"
    await screen.press("C-\\", "C-n")
    await screen.command("bwipeout!")


async def test_a_command_being_typed_stays(screen: Terminal) -> None:
    await screen.type(":echo 'so")
    shown = await call(screen, "editor_open", path="two.txt", line=60)
    assert shown["entered"] is False
    await screen.enter(" far'")
    await screen.shows("so far", "one 1", "two 60")


async def test_a_swap_file_of_another_editor_causes_no_question(
    screen: Terminal, spawn_nvim: Spawn, project: Path, home: Home
) -> None:
    swap = home.make("swap")
    other = await spawn_nvim(cwd=project)
    await other.request("nvim_command", f"set updatecount=200 swapfile directory={swap}// | edit two.txt")
    await other.request("nvim_command", "preserve")
    assert list(swap.iterdir())
    await screen.command(f"set directory={swap}//")
    await call(screen, "editor_open", path="two.txt", line=60)
    await screen.shows("two 60")
    await screen.type("jj")
    await screen.shows("62,")


async def test_a_file_changed_on_disk_causes_no_question(screen: Terminal, project: Path) -> None:
    await screen.command("edit two.txt")
    await screen.shows("two 1")
    await screen.command("edit one.txt")
    await screen.shows("one 1")
    (project / "two.txt").write_text("by others\nsecond\n")
    await call(screen, "editor_open", path="two.txt", line=2)
    await screen.shows("by others")
    await screen.type("xx")
    await screen.command("edit one.txt")
    await screen.shows("one 1")
    (project / "two.txt").write_text("by others again\n")
    await call(screen, "editor_open", path="two.txt", line=2)
    await screen.shows("by others", "cond")
