"""Many editors and clients on one machine, and one client while everything is restarted."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.support import restarts
from tests.support.bridge import Bridge, connect, ready
from tests.support.nvim import Home, Nvim
from tests.support.results import text_of

pytestmark = [pytest.mark.slow]

EDITORS, CLIENTS, CALLS = 10, 2, 15
INIT = (
    restarts.INIT
    + """
mcp_tools.register({ name = 'held', description = 'd', needs_approval = false, run = function(ctx)
  ctx:await(function(done) _G.release = done end)
  return 'at last'
end })
"""
)


async def stdio(nvim: Nvim, env: dict[str, str], folder: Path) -> int:
    """Calls by a client that knows nothing but its directory; returns how many reached `nvim`."""
    tally = restarts.Tally()
    async with restarts.relayed(folder, env, tally) as client:
        for _ in range(CALLS):
            await client.call("whose", lambda text: text == str(nvim.process.pid))
    return tally.right


async def test_ten_editors_and_twenty_clients(spawn_nvim: Callable[..., Awaitable[Nvim]], home: Home) -> None:
    """A client a project over HTTP, one over stdio that finds the editor by its folder; a tool ends last."""
    editors = await asyncio.gather(
        *(spawn_nvim(init_lua=INIT, cwd=home.make(f"project-{number}")) for number in range(EDITORS))
    )
    await asyncio.gather(*(nvim.lua("mcp_tools.start()") for nvim in editors))
    bridges: list[Bridge] = list(await asyncio.gather(*(ready(nvim) for nvim in editors)))
    assert len({bridge.port for bridge in bridges}) == EDITORS
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("NVIM", "MCP_"))}
    env = kept | editors[0].home.environment()
    env.pop("NVIM", None)

    async def http(bridge: Bridge) -> int:
        pid, right = str(bridge.nvim.process.pid), 0
        async with connect(bridge, "sessions") as client:
            for _ in range(CALLS):
                right += text_of(await client.call_tool("nvim_whose")) == pid
        return right

    async with connect(bridges[0], "sessions") as client:
        slow = asyncio.create_task(client.call_tool("nvim_held"))
        found = await asyncio.gather(
            *(http(bridge) for bridge in bridges),
            *(stdio(nvim, env, home.make(f"project-{number}")) for number, nvim in enumerate(editors)),
        )
        assert found == [CALLS] * (EDITORS * CLIENTS)
        assert not slow.done()  # nobody has waited for it
        await editors[0].lua("release()")
        assert text_of(await slow) == "at last"


async def test_stdio_while_everything_is_restarted(spawn_nvim: Callable[..., Awaitable[Nvim]]) -> None:
    """Editor and bridge are restarted in turn under calls: each is answered once, and no process is left.

    bench/endurance.py does the same for an hour, and kills the editor as well.
    """
    tally = await restarts.run(spawn_nvim, 0, every=0.5, pause=0.02, turns=3)
    assert (tally.lost, tally.twice, tally.wrong) == (0, 0, [])
    assert all(re.search("editor|Neovim|bridge", text) for text in tally.failed), tally.failed
    assert tally.right > 10
