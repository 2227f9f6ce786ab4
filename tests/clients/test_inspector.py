"""MCP Inspector on the command line: its exit codes for this server."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support import node
from tests.support.bridge import Bridge

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

INSPECTOR = node.MODULES / "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
OK, AUTH_REQUIRED, TOOL_ERROR = 0, 3, 5


async def inspect(
    bridge: Bridge, home: Path, *args: str, token: str | None = None, sse: bool = False
) -> node.Done:
    """Run it against the bridge."""
    url = f"{bridge.url}/{'sse' if sse else 'mcp'}"
    transport = ("--transport", "sse" if sse else "http", "--stored-auth-only", "--format", "json")
    header = ("--header", f"Authorization: Bearer {token or bridge.token}")
    return await node.run(INSPECTOR, "--cli", url, *transport, *header, *args, home=home)


async def test_its_strict_mode_accepts_the_schemas_of_bundled_tools(bridge: Bridge, tmp_path: Path) -> None:
    done = await inspect(bridge, tmp_path, "--method", "tools/list", "--strict")
    assert done.code == OK, done.err
    assert "nvim_file_read" in [tool["name"] for tool in done.json()["result"]["tools"]]
    # These two of tests/e2e/tools.lua accept anything.
    assert set(re.findall(r'^Warning: tool "(.+)"', done.err, re.MULTILINE)) == {"nvim_echo", "nvim_later"}


async def test_it_distinguishes_a_failed_tool_from_a_failed_server(bridge: Bridge, tmp_path: Path) -> None:
    call = ["--method", "tools/call", "--tool-name", "nvim_fail", "--tool-arg", "how=on purpose"]
    done = await inspect(bridge, tmp_path, *call)
    assert done.code == TOOL_ERROR, done.err
    result = done.json()["result"]
    assert (result["isError"], result["content"][0]["text"]) == (True, "Error: on purpose")


@pytest.mark.parametrize("sse", [False, True], ids=["http", "sse"])
async def test_a_wrong_token_starts_no_login(bridge: Bridge, tmp_path: Path, sse: bool) -> None:
    done = await inspect(bridge, tmp_path, "--method", "tools/list", token="wrong", sse=sse)
    assert done.code == AUTH_REQUIRED, done.err
    assert "auth_required" in done.err
