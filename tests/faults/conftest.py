"""Fixtures of the fault tests: a bridge with the tools of tests/e2e/tools.lua, and a raw client.

Tests that end processes start their own (`bridge`, `raw`). Those that only misuse a bridge share one
(`shared`, `client`), on the required Neovim, and must leave it as they found it:
`pytestmark = pytest.mark.asyncio(loop_scope="session")`.
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
from tests.support.shared import MISUSED, Keep, open_files, settled

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
