"""Clients of both versions of the TypeScript SDK, over every transport, with and without sessions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import node
from tests.support.bridge import Bridge

pytestmark = pytest.mark.asyncio(loop_scope="session")

SCRIPT = Path(__file__).with_name("typescript.mjs")
SESSIONS, STATELESS = "2025-11-25", "2026-07-28"
SLOW = [
    *(("v1", "http", "legacy", SESSIONS), ("v1", "sse", "legacy", None), ("v2", "http", "pin", STATELESS)),
    *(("v2", "http", "legacy", SESSIONS), ("v2", "sse", "legacy", SESSIONS)),
]


@pytest.mark.parametrize(
    ("version", "transport", "mode", "protocol"),
    [*(pytest.param(*case, marks=pytest.mark.slow) for case in SLOW), ("v2", "http", "auto", STATELESS)],
)
async def test_a_typescript_client_can_do_everything(
    bridge: Bridge, tmp_path: Path, version: str, transport: str, mode: str, protocol: str | None
) -> None:
    """It lists, calls, reads, gets progress, cancels a tool and is notified of a new one."""
    url = f"{bridge.url}/{'sse' if transport == 'sse' else 'mcp'}"
    args = (version, transport, mode, url)
    late = f"late_{version}_{transport}_{mode}"
    await bridge.nvim.lua("Seen.cancelled = {}")
    async with node.running(SCRIPT, *args, home=tmp_path, env={"TOKEN": bridge.token}) as client:
        hello = {"server": "mcp-tools.nvim", "protocol": protocol, "listChanged": True, "instructions": True}
        assert await client.line() == hello
        names = await client.line()
        assert {"nvim_test_echo", "nvim_hold"} <= set(names)
        assert names == sorted(names)

        echo = await client.line()
        assert echo["content"] == [{"type": "text", "text": "hällo"}]
        failed = await client.line()
        assert (failed["isError"], failed["content"][0]["text"]) == (True, "Error: on purpose")
        assert failed["structuredContent"] == {"code": "tool_error", "message": "on purpose"}
        # The client checks these two against the tool's output schema.
        assert (await client.line())["structuredContent"] == {"n": 5}
        assert (await client.line())["_meta"]["mcp-tools.nvim/error"]["code"] == "not_found"
        unknown = await client.line()
        assert unknown["code"] == -32602, unknown

        listed = await client.line()
        assert {"nvim://status", "nvim://buffers"} <= set(listed["resources"])
        assert "nvim://buffer/{+path}" in listed["templates"]
        assert listed["status"]
        # Version 2 of the client also converts the code of sessions.
        assert listed["missing"] == (-32002 if version == "v1" else -32602)
        assert "verify_setup" in listed["prompts"]
        assert listed["prompt"] == "text"

        counted = await client.line()
        assert counted["text"] == "counted"
        assert [step["progress"] for step in counted["progress"]] == [1, 2, 3]
        assert counted["progress"][-1] == {"progress": 3, "total": 3, "message": "step 3"}

        await bridge.nvim.wait_for("return Seen.running == 1")
        client.send("abort")
        aborted = await client.line()
        assert "result" not in aborted, aborted
        await bridge.nvim.wait_for("return Seen.running == 0")
        reason = "disconnected" if protocol == STATELESS else "client"
        assert await bridge.nvim.lua("return Seen.cancelled") == [reason]

        client.send("wait for a change")
        assert await client.line() == "waiting"
        tool = "{ name = ..., description = 'x', execute = function(ctx) ctx('') end }"
        await bridge.nvim.lua(f"mcp_tools.register({tool})", late)
        try:
            assert f"nvim_{late}" in await client.line()
        finally:
            await bridge.nvim.lua("mcp_tools.unregister(...)", late)
        await client.end()
