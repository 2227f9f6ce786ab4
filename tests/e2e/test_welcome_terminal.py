"""The first steps at a real terminal, up to the first call by a client."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support import processes, terminal
from tests.support.nvim import Home

pytestmark = terminal.needed

INIT = f"""
_G.mcp_tools = require('mcp-tools')
mcp_tools.setup({{ bridge = {{ python = [[{sys.executable}]] }} }})
"""
HINT = "new here? :McpTools welcome"


def marks(screen: str) -> list[str]:
    return re.findall(r"  (.) \d (?:Options|Python|Bridge|Client|Try it|Your turn) ", screen)


async def call_as(settings: Path, name: str, home: Home) -> dict[str, Any]:
    """Calls a tool as a client with this configuration file."""
    entry = json.loads(settings.read_text())["mcpServers"]["nvim-tools"]
    process = await processes.start(
        *(entry["command"], *entry["args"]),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=home.environment(),
        cwd=home.make("cwd"),
    )
    assert process.stdin is not None
    assert process.stdout is not None
    client = {"name": name, "version": "1"}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    messages = (
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "nvim_editor_state", "arguments": {}}},
    )
    for message in messages:
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    try:
        async with asyncio.timeout(20):
            while True:
                answer: dict[str, Any] = json.loads(await process.stdout.readline())
                if answer.get("id") == 2:
                    return answer
    finally:
        process.stdin.close()
        await process.wait()


async def test_the_hint_waits_for_the_next_start_after_a_warning(nvim_program: Path, home: Home) -> None:
    note = home.mark_welcomed()
    note.unlink()
    init = INIT + "mcp_tools.setup({ aproval = {} })"
    async with terminal.opened(nvim_program, home, init_lua=init) as screen:
        await screen.shows("unknown option")
        await screen.command("lua vim.defer_fn(function() vim.g.later = 'later' end, 300)")
        await screen.command("lua vim.wait(1000, function() return vim.g.later end) print(vim.g.later)")
        await screen.shows("later")
        await screen.command("messages")
        assert HINT not in await screen.screen()
        assert not note.exists()


@pytest.mark.slow
async def test_enter_runs_each_step_up_to_the_first_call(nvim_program: Path, home: Home) -> None:
    home.mark_welcomed().unlink()
    settings = home.make("home") / ".gemini" / "settings.json"
    settings.parent.mkdir()
    (settings.parent / "projects.json").write_text("{}")  # by the client
    async with terminal.opened(nvim_program, home, init_lua=INIT) as screen:
        await screen.shows(HINT)
        await screen.nvim.lua("mcp_tools.setup({ tools = false })")
        await screen.command("McpTools welcome")
        await screen.shows("→ 1 Options    no tool is on: `tools` is false", "<CR> runs it for this session")
        await screen.press("Enter")
        await screen.shows("✓ 1 Options", 'tools = "recommended"', "✓ 3 Bridge     ready: http", "Gemini CLI")
        await screen.shows("· 6 Your turn  start your assistant", "Use the nvim tools and tell")

        await screen.press("Enter")
        asked = await screen.shows("Connect which client?", "Gemini CLI")
        number = re.search(r"(\d+): Gemini CLI", asked)
        assert number
        await screen.enter(number[1])
        await screen.shows("y write", '"stdio"')
        assert not settings.exists()
        await asyncio.sleep(0.7)  # keys are ignored right after the window has opened
        await screen.type("y")
        await screen.shows("✓ 4 Client     Gemini CLI", "whether the server is connected", "→ 5 Try it")
        assert settings.exists()

        await screen.press("Enter")
        await screen.shows("✓ 5 Try it     editor_state answered through client and bridge")
        assert marks(await screen.screen()) == ["✓", "✓", "✓", "✓", "✓", "→"]
        await screen.type("q")
        await screen.command("McpTools welcome")
        await screen.shows("✓ 5 Try it     editor_state", "→ 6 Your turn")
        await screen.press("Enter")
        await screen.shows("type the sentence below step 6 into your assistant")

        answer = await call_as(settings, "gemini-cli", home)
        assert not answer["result"].get("isError"), answer
        await screen.shows("✓ 6 Your turn  gemini-cli has", "the setup is complete")
        await screen.type("q")
        await screen.hides("Your turn")


@pytest.mark.slow
async def test_the_next_step_stays_on_a_small_screen_below_long_advice(
    nvim_program: Path, home: Home
) -> None:
    (home.make("home") / ".codex" / "sessions").mkdir(parents=True)
    async with terminal.opened(nvim_program, home, init_lua=INIT) as screen:
        await screen.command("McpTools welcome")
        await screen.shows("found: Codex", "→ 4 Client")
        await screen.press("Enter")
        asked = await screen.shows("Connect which client?", "Codex")
        number = re.search(r"(\d+): Codex", asked)
        assert number
        await screen.enter(number[1])
        await screen.shows("y write", '"stdio"')
        await asyncio.sleep(0.7)  # keys are ignored right after the window has opened
        await screen.type("y")
        await screen.shows("→ 5 Try it", "<CR> calls a tool")
        await screen.press("Enter")
        await screen.shows("✓ 5 Try it", "→ 6 Your turn", "Use the nvim tools and tell")
        assert "Use the nvim tools" in await screen.nvim.lua("return vim.api.nvim_get_current_line()")


@pytest.mark.slow
async def test_the_hint_is_shown_once(nvim_program: Path, home: Home) -> None:
    home.mark_welcomed().unlink()
    async with terminal.opened(nvim_program, home, init_lua=INIT) as screen:
        await screen.shows(HINT)
    async with terminal.opened(nvim_program, home, init_lua=INIT) as screen:
        await screen.nvim.wait_for("return mcp_tools.endpoint()", timeout=15_000)
        assert HINT not in await screen.screen()


async def test_missing_packages_and_refused_options_are_named(nvim_program: Path, home: Home) -> None:
    init = "_G.mcp_tools = require('mcp-tools')\npcall(mcp_tools.setup, { tools = 'recomended' })"
    async with terminal.opened(nvim_program, home, init_lua=init) as screen:
        await screen.command("McpTools welcome")
        await screen.shows("✗ 1 Options", '"recommended"?)', "2 Python", "is not set up", "3 Bridge")
        await screen.nvim.lua("mcp_tools.setup({ tools = 'recommended', bridge = { autostart = false } })")
        text = await screen.shows("→ 2 Python     Python is not set up")
        assert "<CR> installs it: about 20 MB" in text
        assert marks(text) == ["✓", "→", " ", " ", " ", " "]
