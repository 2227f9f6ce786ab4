"""What a session keeps across restarts of the bridge, and request states that are too old."""

from __future__ import annotations

from typing import Any

import pytest
from mcp import Client, MCPError, types

from tests.support.bridge import ROOT_TOOLS, Bridge, Start, connect, ready, with_limits
from tests.support.nvim import ROOT
from tests.support.raw import STATELESS_META, STATELESS_VERSION, Raw, text_of

COUNT = """
mcp_tools.register({
  name = 'count_calls', description = 'x', annotations = { read_only = true },
  state = function() return { n = 0 } end,
  execute = function(ctx) ctx.state.n = ctx.state.n + 1 ctx(ctx.state.n) end,
})
"""


@pytest.mark.slow
async def test_each_session_has_its_own_state(start_bridge: Start) -> None:
    bridge = await start_bridge(init=COUNT)
    async with Raw(bridge) as one, Raw(bridge) as two:
        await one.initialize()
        await two.initialize()

        async def count(client: Raw) -> str:
            return text_of(await client.call("count_calls"))

        assert [await count(client) for client in (one, one, two, one)] == ["1", "2", "1", "3"]
        assert [text_of(await one.stateless("count_calls")) for _ in range(2)] == ["1", "1"]
        pid = await bridge.pid()
        await bridge.nvim.lua("vim.cmd('McpTools restart')")
        await bridge.nvim.wait_for("return mcp_tools.endpoint() and mcp_tools.status().pid ~= ...", pid)
        assert [await count(one), await count(two)] == ["4", "2"]
        await bridge.nvim.lua(COUNT)
        assert await count(one) == "1"


INIT = f"{ROOT_TOOLS} dofile([[{ROOT / 'tests' / 'e2e' / 'inputs.lua'}]])"


async def nobody(context: Any, params: Any) -> Any:
    raise AssertionError("the test answers itself")


async def who(client: Client, **options: Any) -> Any:
    return await client.session.call_tool("nvim_who", {}, allow_input_required=True, **options)


@pytest.mark.slow
@pytest.mark.parametrize("why", ["parked", "restarted"])
async def test_a_request_state_expires_with_its_call(start_bridge: Start, why: str) -> None:
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


async def test_claude_code_is_known_by_its_user_agent(tools_bridge: Bridge) -> None:
    """Without sessions it sends no name; its tools have `_meta` that only it reads."""
    stateless = {"Mcp_Session_Id": None, "MCP_Protocol_Version": STATELESS_VERSION}
    stateless["Mcp_Method"] = "tools/list"
    async with Raw(tools_bridge) as client:
        message = client.message("tools/list", {"_meta": STATELESS_META})
        for agent, is_claude in (("claude-code/2.1.330 (cli)", True), ("claude-coder", False), ("", False)):
            status, answer = await client.send(message, User_Agent=agent, **stateless)
            assert status == 200
            tools = {tool["name"]: tool for tool in answer["result"]["tools"]}
            assert ("_meta" in tools["nvim_file_read"]) is is_claude
