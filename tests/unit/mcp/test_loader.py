"""The SDK is imported once, at the first request."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from mcp_tools_nvim.values import Settings
from tests.support import processes
from tests.support.served import eventually, served

ROOT = Path(__file__).resolve().parents[3]


def test_the_application_does_not_import_the_sdk() -> None:
    code = (
        "import sys, mcp_tools_nvim.http.app, mcp_tools_nvim.http.handlers\n"
        "import mcp_tools_nvim.process.lifecycle\n"
        "heavy = {'mcp', 'mcp_types', 'pydantic', 'anyio', 'starlette', 'httpx2'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    processes.run([sys.executable, "-c", code], cwd=ROOT / "bridge", check=True, timeout=30)


@pytest.mark.slow
def test_the_import_does_not_block_the_event_loop() -> None:
    code = """if True:
        import asyncio, sys
        from mcp_tools_nvim.http.handlers import Loader

        async def main():
            built, turns = [], 0
            loader = Loader(lambda: built.append("mcp_tools_nvim.mcp.server" in sys.modules))
            task = asyncio.ensure_future(loader.load())
            while not task.done():
                await asyncio.sleep(0.001)
                turns += 1
            assert built == [True]
            assert turns > 10, turns

        asyncio.run(main())
    """
    processes.run([sys.executable, "-c", code], cwd=ROOT / "bridge", check=True, timeout=30)


async def test_first_requests_share_one_import() -> None:
    """With `preload` the import precedes the first request."""
    async with served() as bridge:
        loader = bridge.app.handlers.loader
        assert loader.kernel is None
        kernels = await asyncio.gather(*(loader.load() for _ in range(5)))
        assert len(set(map(id, kernels))) == 1
    async with served(Settings(preload=True)) as bridge:
        await eventually(lambda: bridge.app.handlers.loader.kernel)
