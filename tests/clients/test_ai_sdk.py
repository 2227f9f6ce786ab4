"""The AI SDK uses the editor's tools as its own, without a model, with and without sessions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.support import node
from tests.support.bridge import Bridge

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

SCRIPT = Path(__file__).with_name("ai_sdk.mjs")


@pytest_asyncio.fixture(loop_scope="session")
async def asking(bridge: Bridge) -> AsyncIterator[Bridge]:
    """A bridge whose editor asks for approval through the client."""
    await bridge.nvim.lua(
        "mcp_tools.setup({ approval = { ask_in = 'client' } });"
        "Seen.cancelled, Seen.late = {}, 0; probe.gateway().grants:reset()"
    )
    yield bridge
    await bridge.nvim.lua("mcp_tools.setup({ approval = { ask_in = 'editor' } })")


def text(result: dict[str, Any]) -> str:
    (part,) = result["content"]
    assert part["type"] == "text"
    return str(part["text"])


@pytest.mark.parametrize(
    ("transport", "era", "protocol"),
    [("http", "stateless", "2026-07-28"), *((each, "sessions", "2025-11-25") for each in ("http", "sse"))],
)
async def test_ai_sdk(asking: Bridge, tmp_path: Path, transport: str, era: str, protocol: str) -> None:
    """It lists, runs and stops tools, gets errors, asks the user, and loops over the tools."""
    url = f"{asking.url}/{'sse' if transport == 'sse' else 'mcp'}"
    env = {"TOKEN": asking.token}
    async with node.running(SCRIPT, transport, era, url, home=tmp_path, env=env) as client:
        assert await client.line() == {"server": "mcp-tools.nvim", "protocol": protocol, "instructions": True}

        tools = await client.line()
        assert {"nvim_test_echo", "nvim_file_read", "nvim_hold"} <= set(tools["names"])
        assert tools["names"] == sorted(tools["names"])
        assert tools["described"]
        assert tools["schema"]["properties"]["text"]["type"] == "string"

        assert text(await client.line()) == "hällo"
        failed = await client.line()
        assert (failed["isError"], text(failed)) == (True, "Error: on purpose")
        wrong = await client.line()
        assert wrong["structuredContent"]["code"] == "validation_error"
        assert wrong["structuredContent"]["errors"][0]["field"] == "list"
        assert text(await client.line()) == '{"deep":[1,null]}'
        assert await client.line() == {"names": ["nvim_promised"], "value": {"n": 5}}

        approval = await client.line()
        allowed, denied = approval["answers"]
        assert text(allowed) == "it ran"
        assert denied["structuredContent"]["code"] == "access_denied"
        assert len(approval["asked"]) == 2
        assert "tool    risky" in approval["asked"][0]["message"]
        assert await asking.nvim.lua("return Seen.late") == 1

        await asking.nvim.wait_for("return Seen.running == 1")
        client.send("abort")
        assert await client.line() == "nothing"
        await asking.nvim.wait_for("return Seen.running == 0")

        listed = await client.line()
        assert {"nvim://status", "nvim://buffers"} <= set(listed["resources"])
        assert listed["status"]
        assert "verify_setup" in listed["prompts"]

        loop = await client.line()
        assert (loop["text"], loop["steps"], loop["role"]) == ("ended", 2, "tool")
        assert "from the loop" in str(loop["output"])
        await client.end()
