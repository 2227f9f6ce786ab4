"""When the bridge starts automatically, and when not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support import processes, terminal
from tests.support.nvim import Home, Nvim, Spawn

SETUP = f"require('mcp-tools').setup({{ bridge = {{ python = [[{sys.executable}]] }} }})"
READY = "return require('mcp-tools').is_running() and require('mcp-tools').get_port()"
MODULES = """
local function is_ours(name) return vim.startswith(name, 'mcp-tools') end
return vim.tbl_filter(is_ours, vim.tbl_keys(package.loaded))
"""
# Far longer than autostart waits after UIEnter.
LATER = "vim.defer_fn(function() _G.later = true end, 200)"


async def does_not_start(nvim: Nvim, why: str) -> None:
    """After UIEnter no module of the bridge is loaded, and health gives the reason."""
    await nvim.lua(LATER)
    await nvim.wait_for("return later")
    assert not await nvim.lua("return probe.is_loaded('control')")
    assert why in await nvim.lua("return probe.autostart.blocker()")


async def test_without_setup_no_module_is_loaded_and_commands_say_what_is_missing(spawn_nvim: Spawn) -> None:
    nvim = await spawn_nvim()
    await nvim.attach_ui()
    await nvim.lua(LATER)
    await nvim.wait_for("return later")
    assert await nvim.lua(MODULES) == []
    await nvim.request("nvim_command", "McpTools status")
    lines = await nvim.request("nvim_buf_get_lines", 0, 0, -1, False)
    assert "● stopped" in lines[1]
    await nvim.request("nvim_command", "McpTools tools")
    lines = await nvim.request("nvim_buf_get_lines", 0, 0, -1, False)
    assert "file" in " ".join(lines).split()


async def test_without_autostart_only_the_command_starts_it(spawn_nvim: Spawn) -> None:
    nvim = await spawn_nvim(
        init_lua=f"{SETUP}\nrequire('mcp-tools').setup({{ bridge = {{ autostart = false }} }})"
    )
    await nvim.attach_ui()
    await does_not_start(nvim, "bridge.autostart is false")
    await nvim.request("nvim_command", "McpTools start")
    await nvim.wait_for(READY, timeout=15_000)


@terminal.needed
@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("git -c core.editor={quoted} commit --allow-empty", "gitcommit"),
        ("{nvim} -d one two", "differences"),
        ("printf 'LS(1)\\n\\nNAME\\n   ls\\n' | {nvim} +Man!", "man"),
    ],
    ids=["commit message", "diff", "manual page"],
)
async def test_no_bridge_for_short_tasks(nvim_program: Path, home: Home, command: str, why: str) -> None:
    cwd = home.make("cwd")
    for name in ("one", "two"):
        (cwd / name).write_text(f"{name}\n")
    processes.run(["git", "init", "--quiet"], cwd=cwd, env=home.environment(), check=True)
    names = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL")
    async with terminal.opened(
        nvim_program, home, init_lua=SETUP, command=command, cwd=cwd, env=dict.fromkeys(names, "test")
    ) as screen:
        await does_not_start(screen.nvim, why)
