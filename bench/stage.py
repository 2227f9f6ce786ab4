"""The environment of every scenario: a running Neovim, the servers, and the amount of work."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import servers
from rounds import Amount

from tests.support import nvim
from tests.support.nvim import Home, Nvim

HERE = Path(__file__).resolve().parent
ENCODER_US = 112
"""Time of `vim.json.encode` for the largest result on the machine for which limits in ms were set.

None of our code runs in it, so a limit does not grow with the measured code."""
INIT = f"""
require('mcp-tools').setup({{ bridge = {{ autostart = false }} }})
dofile([[{HERE / "tools.lua"}]])
"""


@dataclass(frozen=True)
class Stage:
    """The running programs. `bridge`, `floor` and `editor` belong together."""

    program: Path
    home: Home
    editor: Nvim
    bridge: servers.Program
    floor: servers.Program
    peer: servers.Program
    http: aiohttp.ClientSession
    amount: Amount
    slowness: float
    """The relative time of this machine compared with the reference machine, at least 1."""

    def most(self, milliseconds: float) -> float:
        """Return a limit for the main thread, in ms on this machine."""
        return milliseconds * self.slowness

    def reach(self, milliseconds: float) -> str:
        """Return a limit for the main thread as text."""
        return f"{milliseconds:g} ms" + (
            f" × {self.slowness:.2f} (slower machine)" if self.slowness > 1 else ""
        )


@contextlib.asynccontextmanager
async def editor(program: Path, folder: Path) -> AsyncIterator[Nvim]:
    """A headless Neovim with the benched tools."""
    folder.mkdir(exist_ok=True)
    async with nvim.running(program, Home(folder), init_lua=INIT) as running:
        yield running


@contextlib.asynccontextmanager
async def http_client() -> AsyncIterator[aiohttp.ClientSession]:
    """A client for requests that are not measured."""
    timeout = aiohttp.ClientTimeout(total=120)
    async with aiohttp.ClientSession(timeout=timeout) as http:
        yield http


@contextlib.asynccontextmanager
async def prepare(program: Path, folder: Path, amount: Amount) -> AsyncIterator[Stage]:
    """Starts all programs."""
    async with contextlib.AsyncExitStack() as stack:
        running = await stack.enter_async_context(editor(program, folder / "main"))
        home = running.home
        bridge = await stack.enter_async_context(servers.bridge(running.socket, home))
        floor = await stack.enter_async_context(servers.floor(running.socket, home))
        peer = await stack.enter_async_context(servers.peer(home))
        http = await stack.enter_async_context(http_client())
        encoder = min([await running.lua("return BENCH.encoder()") for _ in range(10)])
        slowness = max(1.0, encoder / ENCODER_US)
        yield Stage(program, home, running, bridge, floor, peer, http, amount, slowness)
