"""Tools written in Python that call tools of their editor, of either language."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from mcp_tools_nvim.api import call_tool, call_tool_async
from tests.support.nvim import Nvim
from tests.support.programs import editor

pytestmark = pytest.mark.slow  # each has a host of its own

TOOLS = '''
import os
import subprocess
import sys
from typing import Any

from mcp_tools_nvim.api import call_tool, call_tool_async
from mcp_tools_nvim.python_tools import mcp_tool

READ = {"read_only": True}


@mcp_tool(annotations=READ)
def nest(name: str, given: dict[str, Any]) -> Any:
    """Calls a tool and waits."""
    return call_tool(name, given)


@mcp_tool(annotations=READ)
async def nest_async(name: str, given: dict[str, Any]) -> Any:
    """Calls a tool and awaits it."""
    return await call_tool_async(name, given)


@mcp_tool(annotations=READ)
async def nest_wrong() -> Any:
    """Would hold up every other tool."""
    return call_tool("echo")


@mcp_tool(annotations=READ)
def child() -> str:
    """What a program gets that a tool starts."""
    code = "import os; print(*os.environ)"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip()
'''


@pytest.fixture
async def nvim(spawn_nvim: Callable[..., Awaitable[Nvim]], tmp_path: Path) -> Nvim:
    folder = tmp_path / "plugin" / "mcp_tools"
    folder.mkdir(parents=True)
    (folder / "nesting.py").write_text(TOOLS)
    nvim = await editor(
        spawn_nvim,
        f"{{ tools = {{ 'nesting' }}, bridge = {{ python = [[{sys.executable}]] }},"
        " approval = { tools = { mark = 'deny' } } }",
        args=["--cmd", f"set runtimepath+={folder.parent}"],
    )
    await nvim.wait_for("return require('mcp-tools').list_tools().nest", timeout=20_000)
    return nvim


WAYS = ("nest", "nest_async")


async def test_a_tool_of_the_editor(nvim: Nvim) -> None:
    """The editor is the one that runs the tool; results and errors come as they do to a script."""
    socket = str(nvim.socket)
    for way in WAYS:
        given = call_tool(way, {"name": "echo", "given": {"value": {"a": [1]}}}, socket=socket)["structured"]
        assert given["structured"] == {"a": [1]}
        given = call_tool(way, {"name": "nowhere", "given": {}}, socket=socket)["structured"]
        assert given["error"]["code"] == "unknown_tool"


async def test_each_is_judged(nvim: Nvim) -> None:
    """What the person denies stays denied, whoever calls it."""
    for way in WAYS:
        given = call_tool(way, {"name": "mark", "given": {}}, socket=str(nvim.socket))["structured"]
        assert given["error"]["code"] == "access_denied"
    assert await nvim.lua("return Seen.late") == 0


async def test_python_calls_python(nvim: Nvim) -> None:
    """Calls within calls of the same process end, many at once, to any mix of both kinds."""
    arguments: dict[str, object] = {"name": "echo", "given": {"value": "deep"}}
    for depth in range(4):
        arguments = {"name": WAYS[depth % 2], "given": arguments}
    calls = (call_tool_async("nest", arguments, socket=str(nvim.socket)) for _ in range(8))
    for result in await asyncio.gather(*calls):
        for _ in range(5):
            result = result["structured"]
        assert result["text"] == "deep"


async def test_not_on_the_loop(nvim: Nvim) -> None:
    """An `async` tool that would hold up the others is told what to do instead."""
    error = call_tool("nest_wrong", socket=str(nvim.socket))["error"]
    assert error["code"] == "execution_error"
    assert "await call_tool_async" in error["message"]


@pytest.mark.parametrize("way", WAYS)
async def test_a_cancel_goes_on(nvim: Nvim, way: str) -> None:
    """When a tool is cancelled, so is what it has called."""
    arguments = {"name": "hold", "given": {}}
    call = asyncio.create_task(call_tool_async(way, arguments, socket=str(nvim.socket)))
    await nvim.wait_for("return Seen.running == 1", timeout=10_000)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await nvim.wait_for("return #Seen.cancelled == 1 and pending() == 0")


async def test_what_programs_get(nvim: Nvim) -> None:
    """A program that a tool starts does not get the editor's address."""
    names = call_tool("child", socket=str(nvim.socket))["text"].split()
    assert "PATH" in names
    assert [n for n in names if n in ("NVIM", "NVIM_LISTEN_ADDRESS") or n.startswith("MCP_")] == []
