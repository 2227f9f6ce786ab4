"""Many editors and clients on one machine, and one client while everything is restarted."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from tests.support import restarts
from tests.support.bridge import Bridge, connect, ready
from tests.support.nvim import Home, Nvim, Spawn
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


async def stdio(nvim: Nvim, env: dict[str, str], directory: Path) -> int:
    """Calls by a client that only has its directory; returns how many reached `nvim`."""
    tally = restarts.Tally()
    async with restarts.relayed(directory, env, tally) as client:
        for _ in range(CALLS):
            await client.call("whose", lambda text: text == str(nvim.process.pid))
    return tally.right


async def test_twenty_clients_reach_their_own_of_ten_editors(spawn_nvim: Spawn, home: Home) -> None:
    editors = await asyncio.gather(
        *(spawn_nvim(init_lua=INIT, cwd=home.make(f"project-{number}")) for number in range(EDITORS))
    )
    await asyncio.gather(*(nvim.lua("mcp_tools.start()") for nvim in editors))
    bridges: list[Bridge] = list(await asyncio.gather(*(ready(nvim) for nvim in editors)))
    assert len({bridge.port for bridge in bridges}) == EDITORS
    env = editors[0].home.environment()

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
        assert not slow.done()
        await editors[0].lua("release()")
        assert text_of(await slow) == "at last"


async def test_calls_over_stdio_survive_restarts_of_editor_and_bridge(spawn_nvim: Spawn) -> None:
    """bench/endurance.py does the same for an hour, and also kills the editor."""
    tally = await restarts.run(spawn_nvim, 0, every=0.5, pause=0.02, turns=3)
    assert (tally.lost, tally.twice, tally.wrong) == (0, 0, [])
    assert all(re.search("editor|Neovim|bridge", text) for text in tally.failed), tally.failed
    assert tally.right > 10
