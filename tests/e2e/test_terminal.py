"""A person at a real terminal: commands, health, questions, the end. What counts is what the screen shows."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.support import bridge as support
from tests.support import terminal
from tests.support.bridge import connect
from tests.support.nvim import Home
from tests.support.results import error_of, text_of
from tests.support.terminal import Terminal

pytestmark = [pytest.mark.every_nvim, terminal.needed]


async def test_cancel(idle: Terminal) -> None:
    """One call is cancelled at once; among several the person chooses; a result leaves the cursor alone."""
    slow = 'McpTools call test_progress {"delay_ms":60000}'
    await idle.command("McpTools cancel")
    await idle.shows("[mcp-tools] no call is running")
    await idle.command(slow)
    await idle.command("McpTools cancel")
    await idle.shows("[mcp-tools] cancelled test_progress", "Error (cancelled)")
    assert await idle.nvim.request("nvim_buf_get_name", 0) == ""

    await idle.command(slow)
    await idle.command(slow)
    await idle.command("McpTools cancel")
    await idle.shows("Cancel which call?", "2: test_progress")
    await idle.enter("2")
    await idle.shows("[mcp-tools] cancelled test_progress")
    assert await idle.nvim.lua("return require('mcp-tools.registry').pending_count()") == 1
    await idle.command("McpTools cancel all")
    await idle.nvim.wait_for("return require('mcp-tools.registry').pending_count() == 0")


async def test_health(served: Terminal) -> None:
    """`:checkhealth mcp-tools` shows every part of a healthy installation, and no error."""
    await served.command("checkhealth mcp-tools")
    await served.shows("mcp-tools: Neovim", "OK Neovim 0.", "mcp-tools: Bridge", "ready: http://127.0.0.1:")
    report = "\n".join(await served.nvim.request("nvim_buf_get_lines", 0, 0, -1, False))

    assert "ERROR" not in report
    assert "WARNING" not in report
    for title in ("Python environment", "Files", "Tools"):
        assert f"mcp-tools: {title}" in report
    assert await served.nvim.lua("return mcp_tools.endpoint().token") not in report


@pytest.mark.slow
async def test_approval_by_a_menu(served: Terminal) -> None:
    """By `vim.ui.select` the question names client and tool; 1 runs it, 2 and an empty answer refuse."""
    await served.nvim.lua("mcp_tools.setup({ ui = { approval = 'select' } })")
    bridge = await support.ready(served.nvim)

    async def answer(*keys: str) -> Any:
        call = asyncio.create_task(client.call_tool("nvim_risky", {"path": "here"}))
        await served.shows('calls itself "mcp"', "risky", 'path: "here"', "1: Allow once", "2: Deny")
        for key in (*keys, "Enter"):
            await served.press(key)
        async with asyncio.timeout(20):
            result = await call
        await served.hides("1: Allow once")  # else the next question seems to be there already
        return result

    async with connect(bridge, "stateless") as client:
        assert text_of(await answer("1")) == "it ran"
        for keys in (("2",), ()):
            error = error_of(await answer(*keys))
            assert error["code"] == "access_denied"
            assert "the user at the editor said no" in error["message"]
    assert await served.nvim.lua("return _G.ran") == 1


@pytest.mark.slow
async def test_a_tool_that_asks(served: Terminal) -> None:
    """`test_async_prompt` puts its question on the screen; the key that is pressed is the client's answer."""
    await served.nvim.lua("mcp_tools.setup({ approval = { tools = { test_async_prompt = 'allow' } } })")
    bridge = await support.ready(served.nvim)
    async with connect(bridge, "sessions") as client:
        arguments = {"prompt": "Which colour?", "options": ["red", "green"]}
        call = asyncio.create_task(client.call_tool("nvim_test_async_prompt", arguments))
        await served.shows("Which colour?", "1: red", "2: green")
        await served.enter("2")
        assert json.loads(text_of(await call)) == {"selected": "green", "index": 2}


async def test_quitting_leaves_nothing(served: Terminal, home: Home) -> None:
    """`:qa` with a call in flight ends Neovim within a second; no file tells of its bridge any more.

    That the bridge ends too is what the fixture `no_process_left` looks at.
    """
    instances = home.runtime / "mcp-tools"
    assert len(list(instances.glob("*.json"))) == 1
    await served.command('McpTools call test_progress {"delay_ms":60000}')
    await served.nvim.wait_for("return require('mcp-tools.registry').pending_count() == 1")
    await served.command("qa")
    await served.gone(timeout=1_000)

    assert not list(instances.glob("*.json"))


async def test_commands_in_the_command_line_window(idle: Terminal) -> None:
    """A subcommand shows its window without entering it, or says why it cannot; nothing is thrown."""
    for command, shows in (
        ("McpTools", "MCP tools"),
        ("McpTools log", "mcp-tools://log"),
        ("McpTools status", "mcp-tools://status"),
    ):
        await idle.type("q:")
        await idle.nvim.wait_for("return vim.fn.getcmdwintype() == ':'")
        await idle.command(command)
        await idle.shows(shows)
        assert "traceback" not in await idle.screen()
        await idle.command("quit")
        await idle.nvim.wait_for("return vim.fn.getcmdwintype() == ''")
        await idle.command("only | messages clear | redraw!")
