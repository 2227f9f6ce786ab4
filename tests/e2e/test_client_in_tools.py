"""Tools written in Python that call tools of their editor, of either language."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from mcp_tools_nvim.api import call_tool, call_tool_async
from tests.support.nvim import Nvim, Spawn
from tests.support.programs import editor

pytestmark = pytest.mark.slow  # each has its own worker

TOOLS = '''
import os
import subprocess
import sys
from typing import Any

from mcp_tools_nvim.api import call_tool, call_tool_async
from mcp_tools_nvim.python_tools import mcp_tool

READ = {"read_only": True}


@mcp_tool(annotations=READ)
def nest(name: str, args: dict[str, Any]) -> Any:
    """Calls a tool and waits."""
    return call_tool(name, args)


@mcp_tool(annotations=READ)
async def nest_async(name: str, args: dict[str, Any]) -> Any:
    """Calls a tool and awaits it."""
    return await call_tool_async(name, args)


@mcp_tool(annotations=READ)
async def nest_wrong() -> Any:
    """Would block every other tool."""
    return call_tool("echo")


@mcp_tool(annotations=READ)
def child() -> str:
    """The environment of a program that a tool starts."""
    code = "import os; print(*os.environ)"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip()
'''


@pytest.fixture
async def nvim(spawn_nvim: Spawn, tmp_path: Path) -> Nvim:
    directory = tmp_path / "plugin" / "mcp_tools"
    directory.mkdir(parents=True)
    (directory / "nesting.py").write_text(TOOLS)
    nvim = await editor(
        spawn_nvim,
        f"{{ tools = {{ 'nesting' }}, bridge = {{ python = [[{sys.executable}]] }},"
        " approval = { tools = { mark = 'deny' } } }",
        args=["--cmd", f"set runtimepath+={directory.parent}"],
    )
    await nvim.wait_for("return require('mcp-tools').list_tools().nest", timeout=20_000)
    return nvim


WAYS = ("nest", "nest_async")


async def test_results_and_errors_are_those_of_the_running_editor(nvim: Nvim) -> None:
    socket = str(nvim.socket)
    for way in WAYS:
        inner = call_tool(way, {"name": "echo", "args": {"value": {"a": [1]}}}, socket=socket)["structured"]
        assert inner["structured"] == {"a": [1]}
        inner = call_tool(way, {"name": "nowhere", "args": {}}, socket=socket)["structured"]
        assert inner["error"]["code"] == "unknown_tool"


async def test_a_denied_tool_stays_denied(nvim: Nvim) -> None:
    for way in WAYS:
        inner = call_tool(way, {"name": "mark", "args": {}}, socket=str(nvim.socket))["structured"]
        assert inner["error"]["code"] == "access_denied"
    assert await nvim.lua("return Seen.late") == 0


async def test_nested_calls_of_python_tools_end(nvim: Nvim) -> None:
    arguments: dict[str, object] = {"name": "echo", "args": {"value": "deep"}}
    for depth in range(4):
        arguments = {"name": WAYS[depth % 2], "args": arguments}
    calls = (call_tool_async("nest", arguments, socket=str(nvim.socket)) for _ in range(8))
    for result in await asyncio.gather(*calls):
        for _ in range(5):
            result = result["structured"]
        assert result["text"] == "deep"


async def test_a_blocking_call_in_an_async_tool_is_refused(nvim: Nvim) -> None:
    error = call_tool("nest_wrong", socket=str(nvim.socket))["error"]
    assert error["code"] == "execution_error"
    assert "await call_tool_async" in error["message"]


@pytest.mark.parametrize("way", WAYS)
async def test_cancelling_a_tool_cancels_its_calls(nvim: Nvim, way: str) -> None:
    arguments = {"name": "hold", "args": {}}
    call = asyncio.create_task(call_tool_async(way, arguments, socket=str(nvim.socket)))
    await nvim.wait_for("return Seen.running == 1", timeout=10_000)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await nvim.wait_for("return #Seen.cancelled == 1 and pending() == 0")


async def test_a_program_started_by_a_tool_gets_no_address(nvim: Nvim) -> None:
    names = call_tool("child", socket=str(nvim.socket))["text"].split()
    assert "PATH" in names
    assert [n for n in names if n in ("NVIM", "NVIM_LISTEN_ADDRESS") or n.startswith("MCP_")] == []
