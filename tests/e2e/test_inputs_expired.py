"""States of the stateless era that come too late."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from mcp import Client, MCPError, types

from tests.support.bridge import ROOT_TOOLS, Bridge, connect, ready, with_limits
from tests.support.nvim import ROOT

INIT = f"{ROOT_TOOLS} dofile([[{ROOT / 'tests' / 'e2e' / 'inputs.lua'}]])"


async def nobody(context: Any, params: Any) -> Any:
    raise AssertionError("the test answers by hand")


async def who(client: Client, **options: Any) -> Any:
    """One leg of the tool that asks for a name."""
    return await client.session.call_tool("nvim_who", {}, allow_input_required=True, **options)


@pytest.mark.slow
@pytest.mark.parametrize("why", ["parked", "restarted"])
async def test_states_that_are_too_old(start_bridge: Callable[..., Awaitable[Bridge]], why: str) -> None:
    """Nobody came back in time, or the bridge began anew: the tool is told, the state is refused."""
    parked = 1_000 if why == "parked" else 600_000
    bridge = await start_bridge(init=INIT, setup=with_limits(parked=parked))
    async with connect(bridge, "stateless", elicitation_callback=nobody) as client:
        first = await who(client)
        if why == "restarted":
            await bridge.nvim.lua("probe.bridge.restart()")
        await bridge.nvim.wait_for("return #Seen.cancelled > 0", timeout=10_000)
        reasons = await bridge.nvim.lua("return Seen.cancelled")
        assert reasons == ["timeout"] if why == "parked" else reasons[0] in ("bridge_gone", "shutdown")
    await bridge.nvim.wait_for("return mcp_tools.endpoint()", timeout=15_000)
    answer = types.ElicitResult(action="accept", content={"name": "Ada"})
    async with connect(await ready(bridge.nvim), "stateless", elicitation_callback=nobody) as client:
        with pytest.raises(MCPError, match="Invalid or expired requestState"):
            await who(client, input_responses={"answer": answer}, request_state=first.request_state)
    assert await bridge.nvim.lua("return Seen.answers") == 0
    assert await bridge.nvim.lua("return require('mcp-tools.registry').pending_count()") == 0
