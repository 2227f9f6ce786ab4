"""One editor with its bridge for all tests of this folder: it is the clients that vary."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest_asyncio

from tests.conftest import nvims
from tests.support import bridge as support
from tests.support.bridge import ROOT_TOOLS, Bridge
from tests.support.homes import new_home
from tests.support.nvim import Nvim, start


# The clients talk to the bridge, which is the same for every Neovim.
@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def bridge() -> AsyncIterator[Bridge]:
    """A bridge that offers all bundled tools and those of tests/e2e/tools.lua."""
    program = Path(nvims.read()["found"][nvims.REQUIRED])
    started: list[Nvim] = []

    async def spawn(**options: Any) -> Nvim:
        started.append(await start(program, home, **options))
        return started[-1]

    with new_home() as home:
        try:
            yield await support.start(spawn, init=ROOT_TOOLS, setup="{ tools = 'all' }")
        finally:
            for nvim in started:
                await nvim.stop()
