"""Starting and stopping in every wrong order, and bridges that do not start: the outcome, and one process."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.bridge import ready
from tests.support.leaks import descendants
from tests.support.nvim import Nvim
from tests.support.raw import Raw, text_of, within

BRIDGE = f"{sys.executable} -m mcp_tools_nvim process.main"

Spawn = Callable[..., Awaitable[Nvim]]

# Said: what a person sees. Told: what callbacks heard, in order.
INIT = """
_G.mcp_tools = require('mcp-tools')
_G.Said, _G.Told = {{}}, {{}}
vim.notify = function(text, level)
  table.insert(Said, {{ text, level }})
end
mcp_tools.setup({setup})
_G.start = function(name)
  mcp_tools.start({{
    on_ready = function(port)
      assert(port == mcp_tools.get_port())
      table.insert(Told, 'ready ' .. name)
    end,
    on_stop = function()
      table.insert(Told, 'stop ' .. name)
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


def bridges() -> list[int]:
    """The bridge processes of this test."""
    found = [pid for pid, command in descendants().items() if command.endswith("process.main")]
    return [pid for pid in found if pid not in OTHERS]


@pytest.fixture(autouse=True)
def not_ours() -> None:
    """Fixtures of other files may hold a bridge for longer than their file."""
    OTHERS.clear()
    OTHERS.update(bridges())


async def told(nvim: Nvim, *lines: str) -> None:
    """Waits until the callbacks heard as much as that, and checks that it is exactly that."""
    await nvim.wait_for("return #Told >= ...", len(lines), timeout=15_000)
    assert await nvim.lua("return Told") == list(lines)


async def answers(nvim: Nvim) -> None:
    """The one bridge that is left serves clients."""
    bridge = await ready(nvim)
    async with Raw(bridge) as raw:
        await raw.initialize()
    assert bridges() == [await bridge.pid()]


@pytest.mark.slow
async def test_stop_and_start_twice_at_once(spawn_nvim: Spawn) -> None:
    """`stop(); start()` twice while it runs: the old one ends, the last one is there, nobody is forgotten."""
    nvim = await spawn_with(spawn_nvim)
    await nvim.lua("start('a')")
    await told(nvim, "ready a")
    await nvim.lua("mcp_tools.stop() start('b') mcp_tools.stop() start('c')")

    await told(nvim, "ready a", "stop a", "stop b", "ready c")
    await answers(nvim)
    assert await nvim.lua("return mcp_tools.status().tries") == 0


@pytest.mark.slow
async def test_stop_and_start_while_it_starts(spawn_nvim: Spawn) -> None:
    """The same before it was ready even once: the first hears that it ended, the last that it is ready."""
    nvim = await spawn_with(spawn_nvim)
    await nvim.lua("start('a') mcp_tools.stop() start('b') mcp_tools.stop() start('c')")

    await told(nvim, "stop a", "stop b", "ready c")
    await answers(nvim)


@pytest.mark.slow
async def test_every_starter_is_told(spawn_nvim: Spawn) -> None:
    """Those who start it together, and one who comes when it runs, share a bridge and each hear once."""
    nvim = await spawn_with(spawn_nvim)
    await nvim.lua("start('a') start('b')")
    await told(nvim, "ready a", "ready b")
    await nvim.lua("start('c')")
    await told(nvim, "ready a", "ready b", "ready c")
    await answers(nvim)

    await nvim.lua("mcp_tools.stop()")
    await told(nvim, "ready a", "ready b", "ready c", "stop a", "stop b", "stop c")
    assert await nvim.lua("return { mcp_tools.is_running(), mcp_tools.get_port() == nil }") == [False, True]
    assert bridges() == []


def program(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


async def given_up(nvim: Nvim, timeout: int = 8_000) -> tuple[dict[str, Any], str]:
    """Starts it, waits until it is given up, and returns the status and the one thing that was said."""
    await nvim.lua("start('a')")
    await nvim.wait_for("return mcp_tools.status().state == 'failed'", timeout=timeout)
    await told(nvim, "stop a")
    status: dict[str, Any] = await nvim.lua("return mcp_tools.status()")
    await nvim.wait_for("return #Said > 0")  # a moment later: an installation may have begun just now
    ((said, level),) = await nvim.lua("return Said")
    assert level == await nvim.lua("return vim.log.levels.ERROR")
    assert status["fault"]["advice"] in said
    assert not status["running"]
    assert bridges() == []
    return status, said


@pytest.mark.slow
async def test_restart_after_crashes(spawn_nvim: Spawn, tmp_path: Path) -> None:
    """A program that crashes twice is tried again after 0.25 and 0.5 s; who waits hears only of success."""
    tries = tmp_path / "tries"
    flaky = program(
        tmp_path / "flaky",
        f"echo x >> {tries}; [ $(wc -l < {tries}) -gt 2 ] && exec {BRIDGE}; "
        'echo "ERROR the cellar is flooded" >&2; exit 3',
    )
    nvim = await spawn_with(spawn_nvim, f"{{ bridge = {{ command = {{ [[{flaky}]] }} }} }}")
    begin = time.monotonic()
    await nvim.lua("start('a')")
    await told(nvim, "ready a")

    assert time.monotonic() - begin >= 0.75
    assert tries.read_text().count("x") == 3
    status = await nvim.lua("return mcp_tools.status()")
    assert status["tries"] == 2
    assert status["last_error"].endswith("code 3: the cellar is flooded")
    assert await nvim.lua("return Said") == []
    await answers(nvim)


@pytest.mark.slow
async def test_given_up_after_five_tries(spawn_nvim: Spawn, tmp_path: Path) -> None:
    """After five new tries the reason is told once, with what to do; `start()` begins anew."""
    tries = tmp_path / "tries"
    broken = program(
        tmp_path / "broken", f'echo x >> {tries}; echo "ERROR the cellar is flooded" >&2; exit 1'
    )
    nvim = await spawn_with(spawn_nvim, f"{{ bridge = {{ command = {{ [[{broken}]] }} }} }}")

    status, said = await given_up(nvim, timeout=20_000)

    assert ":McpTools start" in said
    assert "the cellar is flooded" in said
    assert (status["tries"], tries.read_text().count("x")) == (5, 6)
    await nvim.lua("start('b') mcp_tools.stop()")
    await told(nvim, "stop a", "stop b")


RESTARTS = """
local function tool(name, execute)
  mcp_tools.register({ name = name, description = name, needs_approval = false, execute = execute })
end
tool('restart', function(ctx) vim.cmd('McpTools restart') ctx('done') end)
tool('stop_and_start', function(ctx) mcp_tools.stop() mcp_tools.start() ctx('done') end)
tool('restart_first', function(ctx)
  vim.cmd('McpTools restart')
  vim.defer_fn(function() ctx('done') end, 50)
end)
tool('restart_last', function(ctx) ctx('done') vim.cmd('McpTools restart') end)
"""


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["restart", "stop_and_start", "restart_first", "restart_last"])
async def test_restart_from_inside_of_a_call(spawn_nvim: Spawn, tool: str) -> None:
    """The client is told what the tool gave, with a session and without one, and goes on."""
    nvim = await spawn_with(spawn_nvim)
    await nvim.lua(RESTARTS)
    await nvim.lua("mcp_tools.start()")
    bridge = await ready(nvim)
    async with Raw(bridge) as raw:
        await raw.initialize()
        for call in (raw.call, raw.stateless) * 2:
            old = await bridge.pid()
            assert text_of(await within(15, call(tool))) == "done"
            await nvim.wait_for(
                "return mcp_tools.status().pid ~= ... and mcp_tools.endpoint() ~= nil", old, timeout=15_000
            )
            assert await ready(nvim) == bridge


RELOAD = """
for name in pairs(package.loaded) do
  if name:find('^mcp%-tools') then
    package.loaded[name] = nil
  end
end
"""


@pytest.mark.slow
@pytest.mark.parametrize("then", ["setup", "stop", "while it starts"])
async def test_the_plugin_is_loaded_again(spawn_nvim: Spawn, tmp_path: Path, then: str) -> None:
    """As a plugin manager does it: one bridge, with port and token of the project, which stays the same."""
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
            async with asyncio.timeout(5):
                while bridges():
                    await asyncio.sleep(0.02)
            return
        await nvim.wait_for(
            "return mcp_tools.status().pid ~= ... and mcp_tools.endpoint() ~= nil", old, timeout=15_000
        )
        assert await ready(nvim) == bridge
        assert len(bridges()) == 1
        assert (await raw.send(raw.message("ping")))[0] == 200
