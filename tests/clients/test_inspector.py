"""MCP Inspector on the command line: what its exit codes say of this server."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.support import node
from tests.support.bridge import Bridge

pytestmark = pytest.mark.asyncio(loop_scope="session")

INSPECTOR = node.MODULES / "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
OK, AUTH_REQUIRED, TOOL_ERROR = 0, 3, 5


async def inspect(
    bridge: Bridge, home: Path, *args: str, token: str | None = None, sse: bool = False
) -> node.Done:
    """Run it against the bridge."""
    url = f"{bridge.url}/{'sse' if sse else 'mcp'}"
    return await node.run(
        INSPECTOR,
        "--cli",
        url,
        "--transport",
        "sse" if sse else "http",
        "--stored-auth-only",
        "--format",
        "json",
        "--header",
        f"Authorization: Bearer {token or bridge.token}",
        *args,
        home=home,
    )


def result(done: node.Done) -> Any:
    """The `result` that it printed."""
    return done.json()["result"]


def echo(text: str) -> list[str]:
    """Arguments of a call of the tool that repeats a text."""
    arguments = f'{{"text": "{text}"}}'
    return ["--method", "tools/call", "--tool-name", "nvim_test_echo", "--tool-args-json", arguments]


@pytest.mark.slow
async def test_lists_strictly(bridge: Bridge, tmp_path: Path) -> None:
    """No schema of a bundled tool has anything that it would call a portability problem."""
    done = await inspect(bridge, tmp_path, "--method", "tools/list", "--strict")
    assert done.code == OK, done.err
    assert "nvim_buffer_read" in [tool["name"] for tool in result(done)["tools"]]
    # These two of tests/e2e/tools.lua take anything, on purpose.
    assert set(re.findall(r'^Warning: tool "(.+)"', done.err, re.MULTILINE)) == {"nvim_echo", "nvim_later"}


@pytest.mark.slow
@pytest.mark.parametrize("era", ["legacy", "auto", "modern"])
async def test_calls_in_every_era(bridge: Bridge, tmp_path: Path, era: str) -> None:
    """A call works whichever era it chooses."""
    done = await inspect(bridge, tmp_path, *echo(era), "--protocol-era", era)
    assert done.code == OK, done.err
    assert result(done)["content"] == [{"type": "text", "text": era}]


@pytest.mark.slow
async def test_calls_over_sse(bridge: Bridge, tmp_path: Path) -> None:
    """A call works over the transport of 2024."""
    done = await inspect(bridge, tmp_path, *echo("sse"), sse=True)
    assert done.code == OK, done.err
    assert result(done)["content"] == [{"type": "text", "text": "sse"}]


@pytest.mark.slow
async def test_tool_errors(bridge: Bridge, tmp_path: Path) -> None:
    """A tool that fails is told from a server that does."""
    call = ["--method", "tools/call", "--tool-name", "nvim_fail", "--tool-arg", "how=on purpose"]
    done = await inspect(bridge, tmp_path, *call)
    assert done.code == TOOL_ERROR, done.err
    assert result(done)["isError"] is True
    assert result(done)["content"][0]["text"] == "Error: on purpose"


@pytest.mark.slow
@pytest.mark.parametrize("sse", [False, True], ids=["http", "sse"])
async def test_wrong_token(bridge: Bridge, tmp_path: Path, sse: bool) -> None:
    """It says at once that the token is wrong, and looks for no login."""
    done = await inspect(bridge, tmp_path, "--method", "tools/list", token="wrong", sse=sse)
    assert done.code == AUTH_REQUIRED, done.err
    assert "auth_required" in done.err
