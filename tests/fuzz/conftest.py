"""Fixtures of the property tests: one bridge per Neovim, so that an example costs one request."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.conftest import nvims
from tests.support.bridge import Bridge
from tests.support.raw import Raw
from tests.support.shared import MISUSED, Keep, open_files, settled


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Chooses Neovims as tests/conftest.py does, for the bridge of a whole file."""
    if "bridge" not in metafunc.fixturenames:
        return
    marker = metafunc.definition.get_closest_marker("nvim")
    minors = marker.args if marker else tuple(nvims.SOURCES)
    if metafunc.config.getoption("--quick"):
        minors = (nvims.REQUIRED,)
    ids = [f"nvim-{minor}" for minor in minors]
    metafunc.parametrize("bridge", minors, indirect=True, scope="module", ids=ids)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def bridge(request: pytest.FixtureRequest, keep: Keep) -> AsyncIterator[Bridge]:
    """A bridge that must be the same idle process after all examples."""
    found = nvims.read()["found"]
    if request.param not in found:
        pytest.skip(f"Neovim {request.param} cannot be had")
    running = await keep(request.param, setup=MISUSED)
    pid = await running.pid()
    files = open_files(pid)
    yield running
    await settled(running, pid, files)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def client(bridge: Bridge) -> AsyncIterator[Raw]:
    async with Raw(bridge) as raw:
        await raw.initialize()
        yield raw
