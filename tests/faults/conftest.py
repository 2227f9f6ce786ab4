"""Fixtures of the fault tests: a bridge with the tools of tests/e2e/tools.lua, and a raw client."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from tests.support import bridge as support
from tests.support.bridge import ROOT_TOOLS, Bridge
from tests.support.nvim import Nvim
from tests.support.raw import Raw

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
