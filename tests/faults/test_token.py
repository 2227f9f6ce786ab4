"""Other processes cannot read the token of the bridge."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.bridge import ROOT_TOOLS, Bridge, Start, ready, wait_restarted
from tests.support.leaks import descendants, read
from tests.support.nvim import Spawn
from tests.support.raw import Raw, text_of

BRIDGE = f"{sys.executable} -m mcp_tools_nvim process.main"

STORED = "return probe.identity.load(probe.project.root()).token"

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="there is no /proc")


async def hidden(bridge: Bridge, *more: str) -> None:
    """No process of this run and no log shows the token or one of `more`; the bridge accepts the token."""
    async with Raw(bridge) as raw:
        await raw.initialize()
        assert text_of(await raw.call("echo", {"value": "here"})) == "here"
    assert await bridge.pid() in descendants()
    for secret in (bridge.token, *more):
        for pid, command in descendants().items():
            for place in ("environ", "cmdline"):
                assert secret.encode() not in read(pid, place), (place, command)
        for log in bridge.nvim.home.path.rglob("*.log"):
            assert secret not in log.read_text(), log


@pytest.mark.slow
async def test_no_process_shows_the_token_at_start_restart_or_crash(bridge: Bridge) -> None:
    await hidden(bridge)
    for again in ("restart", "crash"):
        old = await bridge.pid()
        if again == "crash":
            os.kill(old, signal.SIGKILL)
        else:
            await bridge.nvim.request("nvim_command", "McpTools restart")
        await wait_restarted(bridge, old)
        await hidden(bridge)


@pytest.mark.slow
async def test_a_replaced_token_is_hidden_too(spawn_nvim: Spawn, free_port: Callable[[], int]) -> None:
    port = free_port()
    init = f"""
    _G.mcp_tools = require('mcp-tools')
    mcp_tools.setup({{ bridge = {{ python = [[{sys.executable}]], port = {port} }} }})
    {ROOT_TOOLS}
    """
    foreign_server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", port)
    async with foreign_server:
        nvim = await spawn_nvim(init_lua=init)
        before = await nvim.lua(STORED)
        await nvim.lua("mcp_tools.start()")
        bridge = await ready(nvim)
        assert bridge.token != before
        await hidden(bridge, before)


def wrapper(path: Path, text: str) -> str:
    """Options with the user's own program as the bridge."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return f"{{ bridge = {{ command = {{ [[{path}]] }} }} }}"


@pytest.mark.slow
async def test_a_wrapper_script_passes_the_token_on(start_bridge: Start, tmp_path: Path) -> None:
    await hidden(await start_bridge(wrapper(tmp_path / "wrapper", BRIDGE)))


@pytest.mark.slow
@pytest.mark.parametrize("stdin", ["</dev/null", "<&-"], ids=["empty", "closed"])
async def test_a_wrapper_without_stdin_is_reported(spawn_nvim: Spawn, tmp_path: Path, stdin: str) -> None:
    setup = wrapper(tmp_path / "wrapper", f"exec {BRIDGE} {stdin}")
    nvim = await spawn_nvim(init_lua=f"_G.mcp_tools = require('mcp-tools') mcp_tools.setup({setup})")
    await nvim.lua("mcp_tools.start()")
    error = await nvim.wait_for("return mcp_tools.status().last_error", timeout=15_000)
    await nvim.lua("mcp_tools.stop()")
    assert "stdin has no token" in error
