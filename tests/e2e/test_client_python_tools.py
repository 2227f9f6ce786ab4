"""Tools written in Python, called from Python programs: each kind ends as a tool in Lua does."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from mcp_tools_nvim.api import AsyncClient, call_tool, call_tool_async
from tests.support.nvim import ROOT, Nvim
from tests.support.programs import editor

pytestmark = pytest.mark.slow  # each has a host of its own

SAMPLES = ROOT / "tests" / "support" / "python_tools"


@pytest.fixture
async def nvim(spawn_nvim: Callable[..., Awaitable[Nvim]]) -> Nvim:
    nvim = await editor(
        spawn_nvim,
        f"{{ tools = {{ 'samples' }}, bridge = {{ python = [[{sys.executable}]] }} }}",
        args=["--cmd", f"set runtimepath+={SAMPLES}"],
    )
    await nvim.wait_for("return require('mcp-tools').list_tools().py_add", timeout=20_000)
    return nvim


async def test_results_and_failures(nvim: Nvim) -> None:
    """Values, arguments that do not fit, what a function raises, and its end by `sys.exit`."""
    async with AsyncClient(str(nvim.socket)) as client:
        result = await client.call_tool("py_add", a=1, b=3)
        assert (result["ok"], result["structured"]) == (True, {"sum": 4, "words": []})
        assert (await client.call_tool("py_cpu", seconds=0.05))["text"] == "computed"

        async def code(name: str, **arguments: Any) -> str:
            return str((await client.call_tool(name, **arguments))["error"]["code"])

        assert await code("py_add", a="one") == "validation_error"
        assert await code("py_fail", how="tool") == "not_found"
        assert await code("py_fail", how="raise") == "execution_error"
        assert await code("py_fail", how="exit") == "execution_error"
        assert await code("_py_private") == "unknown_tool"


async def test_progress_and_questions(nvim: Nvim, tmp_path: Path) -> None:
    """Progress and log arrive in order; a function that asks gets the program's answer."""
    steps: list[str] = []
    logs: list[Any] = []

    def go_on(news: dict[str, Any]) -> None:
        steps.append(news["message"])
        (tmp_path / f"marker.{news['done'] - 1}").touch()

    result = call_tool(
        "py_steps",
        marker=str(tmp_path / "marker"),
        socket=str(nvim.socket),
        on_progress=go_on,
        on_log=lambda level, data: logs.append(data),
    )
    assert result["text"] == "3 steps"
    assert steps == ["step 1", "step 2", "step 3"]
    assert logs == [{"step": step} for step in range(3)]
    for name in ("py_ask", "py_ask_async"):
        answer = await call_tool_async(
            name, socket=str(nvim.socket), on_elicit=lambda message, schema: {"name": message}
        )
        assert answer["structured"] == {"action": "accept", "content": {"name": "Who?"}}
        assert (await call_tool_async(name, socket=str(nvim.socket)))["error"]["code"] == "capability_missing"
