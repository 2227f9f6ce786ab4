"""A running OpenCode server has the editor's tools as long as both run."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support import agents, processes
from tests.support import bridge as support
from tests.support.nvim import Home, Spawn

# The first one installs the agents.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

PATIENCE = 30
"""Seconds for OpenCode to start."""

CONNECTED = """
local one = probe.integrations.status()[1]
return one and one.state == 'connected'
"""
ANOTHER = "return (probe.current.reported.hello.pid or ...) ~= ..."


@contextlib.asynccontextmanager
async def serving(home: Home) -> AsyncIterator[str]:
    """`opencode serve`, in its own directory and home."""
    agents.install()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = agents.MODULES / "opencode-linux-x64" / "bin" / "opencode"
    switches = ("AUTOUPDATE", "MODELS_FETCH", "DEFAULT_PLUGINS")
    process = await processes.start(
        *(program, "serve", "--port", str(port)),
        cwd=home.make("elsewhere"),
        env=agents.environment(home) | {f"OPENCODE_DISABLE_{name}": "1" for name in switches},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        once = aiohttp.ClientTimeout(total=2)  # it never answers requests from before it was ready
        async with asyncio.timeout(PATIENCE), aiohttp.ClientSession(timeout=once) as session:
            while True:
                with contextlib.suppress(aiohttp.ClientError, TimeoutError):
                    async with session.get(f"{url}/global/health") as answer:
                        if answer.status == 200:
                            break
                await asyncio.sleep(0.1)
        yield url
    finally:
        process.terminate()
        await process.wait()


async def entry(url: str) -> Any:
    """The state of its entry for the editor."""
    async with aiohttp.ClientSession() as session, session.get(f"{url}/mcp") as answer:
        return (await answer.json()).get("nvim-tools", {}).get("status")


async def test_it_has_the_tools_from_start_to_end_of_the_editor(spawn_nvim: Spawn, home: Home) -> None:
    """Also after a restart of the bridge; the token is on no command line."""
    async with serving(home) as url:
        bridge = await support.start(
            spawn_nvim, setup=f"{{ integrations = {{ opencode = {{ url = '{url}' }} }} }}"
        )
        await bridge.nvim.wait_for(CONNECTED, timeout=20_000)
        assert await entry(url) == "connected"
        token = await bridge.nvim.lua("return probe.current.endpoint().token")
        for line in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                assert token.encode() not in line.read_bytes()
        before = await bridge.pid()
        await bridge.nvim.request("nvim_command", "McpTools restart")
        await bridge.nvim.wait_for(ANOTHER, before, timeout=20_000)
        await bridge.nvim.wait_for(CONNECTED, timeout=20_000)
        assert await entry(url) == "connected"
        await bridge.nvim.stop()
        async with asyncio.timeout(10):
            while await entry(url) != "disabled":
                await asyncio.sleep(0.05)
