"""Tools written in Python, called from Python programs: each kind ends as a tool in Lua does."""

from __future__ import annotations

import asyncio
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


async def began(nvim: Nvim) -> Callable[[dict[str, Any]], None]:
    """A callback for progress that notes in the editor that there was some."""
    loop = asyncio.get_running_loop()

    def note(_: dict[str, Any]) -> None:
        asyncio.run_coroutine_threadsafe(nvim.lua("Seen.late = Seen.late + 1"), loop)

    return note


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


async def test_never_ending(nvim: Nvim) -> None:
    """The caller's timeout ends a function that never does, and one that computes; the next call works."""
    socket = str(nvim.socket)
    results = await asyncio.gather(
        call_tool_async("py_never", socket=socket, timeout=1500),
        call_tool_async("py_cpu", socket=socket, timeout=1500),
    )
    assert [result["error"]["code"] for result in results] == ["timeout"] * 2
    assert (await call_tool_async("py_add", a=1, socket=socket))["ok"]


async def test_a_cancel(nvim: Nvim, tmp_path: Path) -> None:
    """Cancelling the call tells the function, in its thread or on its loop."""
    note = await began(nvim)
    for number, name in enumerate(("py_block", "py_await_forever"), 1):
        marker = tmp_path / f"marker-{number}"
        call = asyncio.create_task(
            call_tool_async(name, marker=str(marker), socket=str(nvim.socket), on_progress=note)
        )
        await nvim.wait_for(f"return Seen.late == {number}", timeout=20_000)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        told = marker if name == "py_await_forever" else Path(f"{marker}.cancelled")
        async with asyncio.timeout(10):
            while not (told.exists() and told.read_text()):
                await asyncio.sleep(0.01)
        assert told.read_text() == "client"


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


async def test_the_process_dies(nvim: Nvim, tmp_path: Path) -> None:
    """A call whose process is killed ends, and so does its neighbour; the next one has a new process."""
    note = await began(nvim)
    async with AsyncClient(str(nvim.socket)) as client:
        before = (await client.call_tool("py_pid"))["structured"]
        held = asyncio.create_task(
            client.call_tool("py_block", marker=str(tmp_path / "never"), on_progress=note)
        )
        await nvim.wait_for("return Seen.late == 1", timeout=20_000)
        assert (await client.call_tool("py_die"))["error"]["code"] == "execution_error"
        assert (await held)["error"]["code"] == "execution_error"
        assert (await client.call_tool("py_pid"))["structured"] != before


async def test_side_by_side(nvim: Nvim, tmp_path: Path) -> None:
    """Two functions that block run at once, and the editor answers meanwhile."""
    note = await began(nvim)
    async with AsyncClient(str(nvim.socket)) as client:
        marker = tmp_path / "marker"
        held = [
            asyncio.create_task(client.call_tool("py_block", marker=str(marker), on_progress=note))
            for _ in range(2)
        ]
        await nvim.wait_for("return Seen.late == 2", timeout=20_000)
        assert (await client.call_tool("echo", value="here"))["text"] == "here"
        marker.touch()
        assert [result["text"] for result in await asyncio.gather(*held)] == ["the file is there"] * 2
