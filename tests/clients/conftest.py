"""One editor with its bridge for the clients of this directory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from tests.conftest import nvims
from tests.support.bridge import Bridge
from tests.support.shared import bridge_of


# The clients talk to the bridge, which is the same for every Neovim.
@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def bridge() -> AsyncIterator[Bridge]:
    """A bridge with all bundled tools and those of tests/e2e/tools.lua."""
    async with bridge_of(Path(nvims.read()["found"][nvims.REQUIRED]), setup="{ tools = 'all' }") as running:
        yield running
