"""Fixtures of the fault tests: a bridge with the tools of tests/e2e/tools.lua, and a raw client.

Tests that end processes start their own (`bridge`, `raw`). Those that only misuse a bridge share one
(`shared`, `client`), those that block an editor another (`held`, `held_client`), on its event loop
(`loop_scope="session"`). They must leave it unchanged.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.conftest import nvims
from tests.support import bridge as support
from tests.support.bridge import ROOT_TOOLS, Bridge, Start
from tests.support.nvim import Spawn
from tests.support.raw import Raw
from tests.support.shared import MISUSED, Keep, forgotten, open_files, settled

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def start_bridge(spawn_nvim: Spawn) -> Start:
    """Start a Neovim with a bridge and the tools; `setup` is a Lua table of options."""

    async def start(setup: str = "{}", **options: object) -> Bridge:
        return await support.start(spawn_nvim, setup=setup, init=ROOT_TOOLS, **options)

    return start


@pytest.fixture
async def bridge(start_bridge: Start) -> Bridge:
    return await start_bridge()


@pytest.fixture
async def raw(bridge: Bridge) -> AsyncIterator[Raw]:
    async with Raw(bridge) as client:
        await client.initialize()
        yield client


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared_process(keep: Keep) -> Bridge:
    return await keep(nvims.REQUIRED, setup=MISUSED)


@pytest_asyncio.fixture(loop_scope="session")
async def shared(shared_process: Bridge) -> AsyncIterator[Bridge]:
    """A shared bridge, in which the test must leave nothing behind."""
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
    """The same, with the tools of tests/e2e/tools.lua; it must be idle again after the test."""
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
