"""Fixtures of the tests of tools written in Python.

Tests that do not change the worker share one editor per file (`shared`); others start their own (`start`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.conftest import nvims
from tests.support import bridge as support
from tests.support.bridge import Bridge
from tests.support.nvim import Spawn
from tests.support.python_worker import INIT, Way, caller, loaded
from tests.support.shared import bridge_of


@pytest.fixture(params=["mcp", "lua"])
def way(request: pytest.FixtureRequest) -> Way:
    """Whether tools are called over MCP or from Lua."""
    return request.param


@pytest.fixture
def start(spawn_nvim: Spawn) -> Callable[..., Awaitable[Bridge]]:
    """Starts a Neovim with the sample tools, and its bridge."""

    async def begin(*, init: str = "", **options: Any) -> Bridge:
        bridge = await support.start(spawn_nvim, init=f"{INIT}\n{init}", **options)
        await loaded(bridge.nvim)
        return bridge

    return begin


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(nvim_version: str) -> AsyncIterator[Bridge]:
    """One Neovim with the sample tools, and its bridge, for all tests of a file."""
    async with bridge_of(Path(nvims.read()["found"][nvim_version]), init=INIT) as bridge:
        await loaded(bridge.nvim)
        async with caller(bridge, "lua") as tools:
            await tools.call("py_pid")  # starts the worker, which lives as long as the editor
        yield bridge
