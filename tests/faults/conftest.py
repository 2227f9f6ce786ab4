"""Fixtures of the fault tests: a bridge with the tools of tests/e2e/tools.lua, and a raw client.

Tests that end processes start their own (`bridge`, `raw`). Those that only misuse a bridge share one
(`shared`, `client`), on the required Neovim; those that hold up an editor have one on each (`held`,
`held_client`). They must leave it as they found it, and run on its loop (`loop_scope="session"`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import pytest_asyncio

from tests.conftest import nvims
from tests.support import bridge as support
from tests.support.bridge import ROOT_TOOLS, Bridge
from tests.support.nvim import Nvim
from tests.support.raw import Raw
from tests.support.shared import MISUSED, Keep, forgotten, open_files, settled

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def start_bridge(spawn_nvim: Callable[..., Awaitable[Nvim]]) -> Callable[..., Awaitable[Bridge]]:
    """Start a Neovim with a bridge and the tools; `setup` is a Lua table of options."""

    async def start(setup: str = "{}", **options: object) -> Bridge:
        return await support.start(spawn_nvim, setup=setup, init=ROOT_TOOLS, **options)

    return start


@pytest.fixture
async def bridge(start_bridge: Callable[..., Awaitable[Bridge]]) -> Bridge:
    """A bridge with default options."""
    return await start_bridge()


@pytest.fixture
async def raw(bridge: Bridge) -> AsyncIterator[Raw]:
    """A raw client with a session."""
    async with Raw(bridge) as client:
        await client.initialize()
        yield client


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared_process(keep: Keep) -> Bridge:
    """The bridge of these files."""
    return await keep(nvims.REQUIRED, setup=MISUSED)


@pytest_asyncio.fixture(loop_scope="session")
async def shared(shared_process: Bridge) -> AsyncIterator[Bridge]:
    """The same, and a look at what the test leaves behind in it."""
    pid = await shared_process.pid()
    files = open_files(pid)
    await shared_process.nvim.lua("Seen.cancelled, Seen.running, Seen.late = {}, 0, 0")
    yield shared_process
    await settled(shared_process, pid, files)


@pytest_asyncio.fixture(loop_scope="session")
async def client(shared: Bridge) -> AsyncIterator[Raw]:
    """A raw client of the shared bridge, with a session."""
    async with Raw(shared) as raw_client:
        await raw_client.initialize()
        yield raw_client


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def held_process(nvim_version: str, keep: Keep) -> Bridge:
    """A bridge whose editor has a screen."""
    bridge = await keep(nvim_version)
    if not await bridge.nvim.request("nvim_list_uis"):
        await bridge.nvim.attach_ui()
    return bridge


@pytest_asyncio.fixture(loop_scope="session")
async def held(held_process: Bridge) -> AsyncIterator[Bridge]:
    """The same, with the tools of tests/e2e/tools.lua; it must be free and idle again after the test."""
    await held_process.nvim.lua(ROOT_TOOLS)
    yield held_process
    assert await held_process.nvim.request("nvim_get_mode") == {"mode": "n", "blocking": False}
    await forgotten(held_process)


@pytest_asyncio.fixture(loop_scope="session")
async def held_client(held: Bridge) -> AsyncIterator[Raw]:
    """A raw client of that bridge, with a session."""
    async with Raw(held) as raw_client:
        await raw_client.initialize()
        yield raw_client
