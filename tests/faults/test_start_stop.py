"""Starting and stopping in every order, and bridges that do not start: one process remains, or none."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.bridge import ready, wait_restarted
from tests.support.leaks import descendants
from tests.support.nvim import Nvim, Spawn
from tests.support.raw import Raw, text_of, within
from tests.support.results import eventually

BRIDGE = f"{sys.executable} -m mcp_tools_nvim process.main"

# Notified: what the user sees. Called: the callbacks that ran, in order.
INIT = """
_G.mcp_tools = require('mcp-tools')
_G.Notified, _G.Called = {{}}, {{}}
vim.notify = function(text, level)
  table.insert(Notified, {{ text, level }})
end
mcp_tools.setup({setup})
_G.start = function(name)
  mcp_tools.start({{
    on_ready = function(port)
      assert(port == mcp_tools.get_port())
      table.insert(Called, 'ready ' .. name)
    end,
    on_stop = function()
      table.insert(Called, 'stop ' .. name)
    end,
  }})
end
"""


async def spawn_with(
    spawn_nvim: Spawn, setup: str = f"{{ bridge = {{ python = [[{sys.executable}]] }} }}"
) -> Nvim:
    """A Neovim in which nothing was started yet."""
    return await spawn_nvim(init_lua=INIT.format(setup=setup))


OTHERS: set[int] = set()
"""Bridges of other files, whose fixtures live longer."""


def bridges() -> list[int]:
    """The bridge processes of this test."""
    found = [pid for pid, command in descendants().items() if command.endswith("process.main")]
    return [pid for pid in found if pid not in OTHERS]


@pytest.fixture(autouse=True)
def other_bridges() -> None:
    OTHERS.clear()
    OTHERS.update(bridges())


async def called(nvim: Nvim, *lines: str) -> None:
    """Waits until that many callbacks ran, and checks that it were exactly these."""
    await nvim.wait_for("return #Called >= ...", len(lines), timeout=15_000)
    assert await nvim.lua("return Called") == list(lines)


async def serves(nvim: Nvim) -> None:
    bridge = await ready(nvim)
    async with Raw(bridge) as raw:
        await raw.initialize()
    assert bridges() == [await bridge.pid()]


@pytest.mark.slow
async def test_stop_and_start_twice_while_it_runs_leaves_the_last_bridge(spawn_nvim: Spawn) -> None:
    nvim = await spawn_with(spawn_nvim)
    await nvim.lua("start('a')")
    await called(nvim, "ready a")
    await nvim.lua("mcp_tools.stop() start('b') mcp_tools.stop() start('c')")
    await called(nvim, "ready a", "stop a", "stop b", "ready c")
    await serves(nvim)
    assert await nvim.lua("return mcp_tools.status().tries") == 0


@pytest.mark.slow
async def test_stop_and_start_while_it_starts_leaves_the_last_bridge(spawn_nvim: Spawn) -> None:
    nvim = await spawn_with(spawn_nvim)
    await nvim.lua("start('a') mcp_tools.stop() start('b') mcp_tools.stop() start('c')")
    await called(nvim, "stop a", "stop b", "ready c")
    await serves(nvim)


@pytest.mark.slow
async def test_all_starters_share_a_bridge_and_are_each_notified_once(spawn_nvim: Spawn) -> None:
    nvim = await spawn_with(spawn_nvim)
    await nvim.lua("start('a') start('b')")
    await called(nvim, "ready a", "ready b")
    await nvim.lua("start('c')")
    await called(nvim, "ready a", "ready b", "ready c")
    await serves(nvim)
    await nvim.lua("mcp_tools.stop()")
    await called(nvim, "ready a", "ready b", "ready c", "stop a", "stop b", "stop c")
    assert await nvim.lua("return { mcp_tools.is_running(), mcp_tools.get_port() == nil }") == [False, True]
    assert bridges() == []


def program(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


async def failed(nvim: Nvim, timeout: int = 8_000) -> tuple[dict[str, Any], str]:
    """Starts it, waits until it has failed for good, and returns the status and the only notification."""
    await nvim.lua("start('a')")
    await nvim.wait_for("return mcp_tools.status().state == 'failed'", timeout=timeout)
    await called(nvim, "stop a")
    status: dict[str, Any] = await nvim.lua("return mcp_tools.status()")
    await nvim.wait_for("return #Notified > 0")
    ((message, level),) = await nvim.lua("return Notified")
    assert level == await nvim.lua("return vim.log.levels.ERROR")
    assert status["fault"]["advice"] in message
    assert (status["running"], bridges()) == (False, [])
    return status, message


@pytest.mark.slow
async def test_a_program_that_crashes_twice_is_restarted_silently(spawn_nvim: Spawn, tmp_path: Path) -> None:
    tries = tmp_path / "tries"
    flaky = program(
        tmp_path / "flaky",
        f"echo x >> {tries}; [ $(wc -l < {tries}) -gt 2 ] && exec {BRIDGE}; "
        'echo "ERROR no disk space" >&2; exit 3',
    )
    nvim = await spawn_with(spawn_nvim, f"{{ bridge = {{ command = {{ [[{flaky}]] }} }} }}")
    begin = time.monotonic()
    await nvim.lua("start('a')")
    await called(nvim, "ready a")
    assert time.monotonic() - begin >= 0.75, "the pauses are 0.25 and 0.5 s"
    assert tries.read_text().count("x") == 3
    status = await nvim.lua("return mcp_tools.status()")
    assert status["tries"] == 2
    assert status["last_error"].endswith("code 3: no disk space")
    assert await nvim.lua("return Notified") == []
    await serves(nvim)


@pytest.mark.slow
async def test_after_five_retries_the_reason_is_notified_once(spawn_nvim: Spawn, tmp_path: Path) -> None:
    tries = tmp_path / "tries"
    broken = program(tmp_path / "broken", f'echo x >> {tries}; echo "ERROR no disk space" >&2; exit 1')
    nvim = await spawn_with(spawn_nvim, f"{{ bridge = {{ command = {{ [[{broken}]] }} }} }}")
    status, message = await failed(nvim, timeout=20_000)
    assert ":McpTools start" in message
    assert "no disk space" in message
    assert (status["tries"], tries.read_text().count("x")) == (5, 6)
    await nvim.lua("start('b') mcp_tools.stop()")
    await called(nvim, "stop a", "stop b")


RESTARTS = """
local function tool(name, execute)
  mcp_tools.register({ name = name, description = name, needs_approval = false, execute = execute })
end
tool('restart', function(ctx) vim.cmd('McpTools restart') ctx('done') end)
tool('stop_and_start', function(ctx) mcp_tools.stop() mcp_tools.start() ctx('done') end)
tool('restart_first', function(ctx)
  vim.cmd('McpTools restart')
  vim.defer_fn(function() ctx('done') end, 10)
end)
tool('restart_last', function(ctx) ctx('done') vim.cmd('McpTools restart') end)
"""


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["restart", "stop_and_start", "restart_first", "restart_last"])
async def test_a_tool_that_restarts_the_bridge_gets_its_result_through(spawn_nvim: Spawn, tool: str) -> None:
    nvim = await spawn_with(spawn_nvim)
    await nvim.lua(RESTARTS)
    await nvim.lua("mcp_tools.start()")
    bridge = await ready(nvim)
    async with Raw(bridge) as raw:
        await raw.initialize()
        for call in (raw.call, raw.stateless) * 2:
            old = await bridge.pid()
            assert text_of(await within(15, call(tool))) == "done"
            await wait_restarted(bridge, old)


RELOAD = """
for name in pairs(package.loaded) do
  if name:find('^mcp%-tools') then
    package.loaded[name] = nil
  end
end
"""


@pytest.mark.slow
@pytest.mark.parametrize("then", ["setup", "stop", "while it starts"])
async def test_reloading_keeps_port_and_token(spawn_nvim: Spawn, tmp_path: Path, then: str) -> None:
    setup = f"require('mcp-tools').setup({{ bridge = {{ python = [[{sys.executable}]] }} }})"
    nvim = await spawn_with(spawn_nvim)
    await nvim.lua("start('a')")
    bridge = await ready(nvim)
    async with Raw(bridge) as raw:
        await raw.initialize()
        (old,) = bridges()
        if then == "while it starts":
            await nvim.lua("mcp_tools.stop() mcp_tools.start()")
        await nvim.lua(f"vim.cmd.cd([[{tmp_path}]]) {RELOAD}")
        await nvim.lua(f"{setup} _G.mcp_tools = require('mcp-tools')")
        if then == "stop":
            await nvim.lua("mcp_tools.stop()")
            await nvim.wait_for("return mcp_tools.status().state == 'stopped'")
            await eventually(lambda: not bridges())
            return
        await wait_restarted(bridge, old)
        assert len(bridges()) == 1
        assert (await raw.send(raw.message("ping")))[0] == 200
