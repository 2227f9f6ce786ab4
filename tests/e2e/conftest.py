"""Fixtures of the end-to-end tests: bridges for one module or several, and transports of clients.

Modules that use `tools_bridge` share its event loop (`pytestmark`); its state is reset before each test.
`common_bridge` and `common_tools` live as long as the session.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.conftest import nvims
from tests.support import bridge as support
from tests.support import terminal
from tests.support.bridge import ROOT_TOOLS, Bridge, Start, Transport
from tests.support.captures import Captures, join
from tests.support.nvim import Home, Spawn
from tests.support.shared import Keep, bridge_of
from tests.support.terminal import Terminal

HERE = Path(__file__).parent


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Joins equal captures of several Neovims."""
    if session.config.getoption("--update-captures") and not hasattr(session.config, "workerinput"):
        join(HERE, nvims.REQUIRED)


@pytest.fixture
def captures(request: pytest.FixtureRequest, nvim_version: str) -> Captures:
    """The stored captures: `captures.matches("dashboard/open", text)`."""
    return Captures(HERE, nvim_version, request.config.getoption("--update-captures"))


@pytest.fixture(params=["sessions", "stateless"])
def transport(request: pytest.FixtureRequest) -> Transport:
    """Without SSE, which has the same sessions; test_calls.py covers it."""
    return request.param


@pytest.fixture
def start_bridge(spawn_nvim: Spawn) -> Start:
    """Starts a Neovim and a bridge for this test: `await start_bridge(init="…", setup="{…}")`."""

    async def start(**options: Any) -> Bridge:
        return await support.start(spawn_nvim, **options)

    return start


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def module_bridge(nvim_version: str) -> AsyncIterator[Bridge]:
    """One Neovim and its bridge for all tests of a module."""
    async with bridge_of(
        Path(nvims.read()["found"][nvim_version]), setup="{ tools = { 'test', 'buffer', 'file' } }"
    ) as bridge:
        yield bridge


@pytest_asyncio.fixture(loop_scope="module")
async def tools_bridge(module_bridge: Bridge) -> Bridge:
    """A bridge with the tools of tests/e2e/tools.lua, in their initial state."""
    await module_bridge.nvim.lua(ROOT_TOOLS)
    return module_bridge


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def common_bridge(nvim_version: str, keep: Keep) -> Bridge:
    """One Neovim and its bridge for all modules that ask for it."""
    return await keep(nvim_version, setup="{ tools = { 'test', 'buffer', 'file' } }")


@pytest_asyncio.fixture(loop_scope="session")
async def common_tools(common_bridge: Bridge) -> Bridge:
    """The same with the tools of tests/e2e/tools.lua, in their initial state."""
    await common_bridge.nvim.lua(ROOT_TOOLS)
    return common_bridge


SCREEN_INIT = """
_G.mcp_tools = require('mcp-tools')
mcp_tools.setup({{ tools = {{ 'test' }}, bridge = {{ python = [[{python}]], autostart = {autostart} }} }})
mcp_tools.register({{
  name = 'risky',
  description = 'Changes something.',
  annotations = {{ destructive = true }},
  execute = function(ctx)
    _G.ran = (_G.ran or 0) + 1
    ctx('it ran')
  end,
}})
"""

Open = Callable[..., AbstractAsyncContextManager[Terminal]]


@pytest.fixture
def open_terminal(nvim_program: Path, home: Home) -> Open:
    """Opens a terminal with Neovim and the test tools; `init` is more Lua, others as in `terminal.opened`."""

    @contextlib.asynccontextmanager
    async def opened(*, autostart: bool = False, init: str = "", **options: Any) -> AsyncIterator[Terminal]:
        first = SCREEN_INIT.format(python=sys.executable, autostart="true" if autostart else "false")
        async with terminal.opened(nvim_program, home, init_lua=first + init, **options) as screen:
            yield screen
            # This prompt blocks the editor.
            assert "Press ENTER" not in await screen.screen()

    return opened


@pytest.fixture
async def bridge(screen: Terminal) -> Bridge:
    """The bridge of the Neovim in the module's terminal."""
    return await support.ready(screen.nvim)


@pytest.fixture
async def idle(open_terminal: Open) -> AsyncIterator[Terminal]:
    """A terminal whose Neovim has no bridge."""
    async with open_terminal() as screen:
        yield screen


@pytest.fixture
async def served(open_terminal: Open) -> AsyncIterator[Terminal]:
    """A terminal whose Neovim has started its bridge automatically."""
    async with open_terminal(autostart=True) as screen:
        await screen.nvim.wait_for("return mcp_tools.endpoint()", timeout=15_000)
        yield screen
