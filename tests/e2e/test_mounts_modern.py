"""Mounted servers that know the stateless revision alone: over stdio, and at a URL."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from mcp import types

from tests.support import mounts, processes
from tests.support.bridge import Bridge, connect
from tests.support.results import error_of, text_of
from tests.support.shared import Keep

from .test_mounts import call

# The bridge does all of it; the editor's part is that of every Neovim.
pytestmark = [pytest.mark.asyncio(loop_scope="session")]

SERVER = str(mounts.SERVERS / "modern_server.py")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def bridge(nvim_version: str, keep: Keep) -> Bridge:
    """A bridge where everything may run, without mounts."""
    return await keep(nvim_version, setup="{ approval = { default = 'allow' } }")


@contextlib.asynccontextmanager
async def served(how: str, journal: Path) -> AsyncIterator[dict[str, Any]]:
    """What mounts the server."""
    if how == "stdio":
        yield {"command": [sys.executable, SERVER, str(journal)], "allow": ["elicitation"]}
        return
    process = await processes.start(
        sys.executable, SERVER, str(journal), "http", stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        port = int(await asyncio.wait_for(process.stdout.readline(), 20))
        yield {"url": f"http://127.0.0.1:{port}/mcp", "allow": ["elicitation"]}
    finally:
        process.kill()
        await process.wait()


@pytest.mark.slow
@pytest.mark.parametrize("how", ["stdio", "http"])
async def test_a_server_without_sessions(how: str, bridge: Bridge, tmp_path: Path) -> None:
    """Results, errors, progress, a question, cancel, new tools, resources and prompts are as of any other."""
    journal, steps = mounts.Journal(tmp_path / "journal"), []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        steps.append((done, total, message))

    async def elicit(_: Any, __: Any) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"name": "Ada"})

    async with (
        served(how, journal.path) as spec,
        mounts.mounted(bridge, "new", spec) as status,
        connect(bridge, "sessions", elicitation_callback=elicit) as client,
    ):
        assert status["server"] == "modern-upstream 1.0"
        assert text_of(await client.call_tool("new__echo", {"text": "hällo"})) == "hällo"
        refused = error_of(await client.call_tool("new__refuse"))
        assert refused == {"code": "tool_error", "message": "not today"}
        assert text_of(await client.call_tool("new__count", progress_callback=progress)) == "counted"
        assert steps == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]
        assert text_of(await client.call_tool("new__ask")) == 'asked accept {"name": "Ada"}'
        (contents,) = (await client.read_resource("new+test://static")).contents
        assert contents.text == "read test://static"  # type: ignore[union-attr]
        assert (await client.get_prompt("new__greet")).messages
        await bridge.nvim.lua("_G.Handle = mcp_tools.call('new__hold', {}, function() end)")
        async with asyncio.timeout(20):
            while ["hold"] not in journal.of("call"):
                await asyncio.sleep(0.02)
            await bridge.nvim.lua("_G.Handle:cancel()")
            while not journal.of("cancelled"):
                await asyncio.sleep(0.02)
        assert (await call(bridge, "new__grow"))["result"] == "grown"
        await bridge.nvim.wait_for("return mcp_tools.list_tools().new__grown ~= nil")
