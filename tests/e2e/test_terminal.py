"""A user at a real terminal: commands, health, questions, quitting."""

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


async def test_the_user_cancels_calls(idle: Terminal) -> None:
    slow = 'McpTools call test_progress {"delay_ms":60000}'
    await idle.command("McpTools cancel")
    await idle.shows("[mcp-tools] no call is running")
    await idle.command(slow)
    await idle.command("McpTools cancel test_progress")
    await idle.shows("[mcp-tools] cancelled test_progress", "Error (cancelled)")
    await idle.type("q")
    await idle.nvim.wait_for("return vim.api.nvim_buf_get_name(0) == ''")
    await idle.command(slow)
    await idle.command(slow)
    await idle.command("McpTools cancel")
    await idle.shows("Cancel which call?", "2: test_progress", '{"delay_ms":60000')
    await idle.enter("2")
    await idle.shows("[mcp-tools] cancelled test_progress")
    assert await idle.nvim.lua("return require('mcp-tools.registry').pending_count()") == 1
    await idle.command("McpTools cancel all")
    await idle.nvim.wait_for("return require('mcp-tools.registry').pending_count() == 0")


async def test_checkhealth_shows_every_part_without_errors(served: Terminal) -> None:
    await served.command("checkhealth mcp-tools")
    await served.shows("mcp-tools: Neovim", "OK Neovim 0.", "mcp-tools: Bridge", "ready: http://127.0.0.1:")
    report = "\n".join(await served.nvim.request("nvim_buf_get_lines", 0, 0, -1, False))
    assert "ERROR" not in report
    assert "WARNING" not in report
    for title in ("Python environment", "Files", "Tools"):
        assert f"mcp-tools: {title}" in report
    assert await served.nvim.lua("return mcp_tools.endpoint().token") not in report


@pytest.mark.slow
async def test_approval_by_vim_ui_select(served: Terminal) -> None:
    await served.nvim.lua("mcp_tools.setup({ ui = { approval = 'select' } })")
    bridge = await support.ready(served.nvim)

    async def answer(*keys: str) -> Any:
        call = asyncio.create_task(client.call_tool("nvim_risky", {"path": "here"}))
        await served.shows('calls itself "mcp"', "risky", 'path: "here"', "1: Allow once", "2: Deny")
        for key in (*keys, "Enter"):
            await served.press(key)
        async with asyncio.timeout(20):
            result = await call
        await served.hides("1: Allow once")
        return result

    async with connect(bridge, "stateless") as client:
        assert text_of(await answer("1")) == "it ran"
        for keys in (("2",), ()):
            error = error_of(await answer(*keys))
            assert error["code"] == "access_denied"
            assert "the user at the editor said no" in error["message"]
    assert await served.nvim.lua("return _G.ran") == 1


@pytest.mark.slow
async def test_a_key_answers_the_question_of_a_tool(served: Terminal) -> None:
    await served.nvim.lua("mcp_tools.setup({ approval = { tools = { test_async_prompt = 'allow' } } })")
    bridge = await support.ready(served.nvim)
    async with connect(bridge, "sessions") as client:
        arguments = {"prompt": "Which colour?", "options": ["red", "green"]}
        call = asyncio.create_task(client.call_tool("nvim_test_async_prompt", arguments))
        await served.shows("Which colour?", "1: red", "2: green")
        await served.enter("2")
        assert json.loads(text_of(await call)) == {"selected": "green", "index": 2}


async def test_quitting_leaves_nothing(served: Terminal, home: Home) -> None:
    """`:qa` with a call in flight ends Neovim at once. (`no_process_left` checks the bridge.)"""
    instances = home.runtime / "mcp-tools"
    assert len(list(instances.glob("*.json"))) == 1
    await served.command('McpTools call test_progress {"delay_ms":60000}')
    await served.nvim.wait_for("return require('mcp-tools.registry').pending_count() == 1")
    await served.command("qa")
    await served.gone(timeout=10_000)
    assert not list(instances.glob("*.json"))


async def test_commands_work_in_the_command_line_window(idle: Terminal) -> None:
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
