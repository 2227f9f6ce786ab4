"""Fixtures of the end-to-end tests: a bridge and a client, once per transport."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from tests.support import bridge as support
from tests.support.bridge import ROOT_TOOLS, TRANSPORTS, Bridge, Transport
from tests.support.nvim import Nvim


@pytest.fixture(params=TRANSPORTS)
def transport(request: pytest.FixtureRequest) -> Transport:
    """How the client talks to the bridge."""
    chosen: Transport = request.param
    return chosen


@pytest.fixture
def start_bridge(spawn_nvim: Callable[..., Awaitable[Nvim]]) -> Callable[..., Awaitable[Bridge]]:
    """Start a Neovim with a bridge: `bridge = await start_bridge(init="…", setup="{…}")`."""

    async def start(**options: Any) -> Bridge:
        return await support.start(spawn_nvim, **options)

    return start


@pytest.fixture
async def tools_bridge(start_bridge: Callable[..., Awaitable[Bridge]]) -> AsyncIterator[Bridge]:
    """A bridge that offers the tools of tests/e2e/tools.lua."""
    yield await start_bridge(init=ROOT_TOOLS, setup="{ tools = { 'test', 'buffer' } }")
