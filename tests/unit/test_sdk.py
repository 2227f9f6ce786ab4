"""The SDK is loaded once, at the first request, and again after a failed load."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import sys
from pathlib import Path

import pytest

from mcp_tools_nvim import sdk
from mcp_tools_nvim.mounts import mount
from mcp_tools_nvim.values import Settings
from tests.support import processes
from tests.support.served import eventually, served
from tests.unit.mounts.editor import Editor

ROOT = Path(__file__).resolve().parents[2]

BOTH = """if True:
    import asyncio, sys
    sys.setswitchinterval(1e-5)
    from mcp_tools_nvim.http.handlers import Loader
    from mcp_tools_nvim.mounts.mount import Mounts
    from tests.unit.mounts.editor import Editor

    async def main():
        editor = Editor()
        mounts = Mounts(editor, lambda _: None)
        editor.tell("mounts", [sys.argv[2]])
        await asyncio.sleep(float(sys.argv[1]))
        await Loader(lambda: "kernel").load()
        async with asyncio.timeout(20):
            while mounts._servers is None:
                await asyncio.sleep(0.01)
                assert "import" not in str(editor.reports), editor.reports
        mounts.end(1)
        await mounts.ended()

    asyncio.run(main())
"""


DELAYS = (0, 0.02, 0.05, 0.1, 0.15, 0.2)
MOUNT = json.dumps([{"name": "m", "command": ["/nonexistent"], "start_timeout": 1000, "limit": 1000}])


@pytest.mark.slow
@pytest.mark.parametrize("delay", DELAYS)
def test_a_client_and_a_mount_load_the_sdk_at_the_same_time(delay: float) -> None:
    env = {**os.environ, "PYTHONPATH": "bridge"}
    command = [sys.executable, "-c", BOTH, str(delay), MOUNT]
    processes.run(command, cwd=ROOT, env=env, check=True, timeout=60)


async def test_a_mount_tries_a_failed_load_again(monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[str] = []

    async def load(module: str) -> None:
        assert importlib.util.find_spec(module) is not None
        loads.append(module)
        if len(loads) == 1:
            raise ImportError("half a module")

    monkeypatch.setattr(sdk, "import_sdk", load)
    monkeypatch.setattr(mount, "RETRY_SECONDS", 0.05)
    editor = Editor()
    mounts = mount.Mounts(editor, lambda _: None)  # type: ignore[arg-type]
    editor.tell("mounts", [MOUNT])
    editor.tell("remote_call", ["1", {"provider": "m", "kind": "tool", "name": "m__x"}, {}, {}])
    await eventually(lambda: editor.messages)
    assert editor.messages[0][:2] == ("remote_result", "1")
    assert editor.reports[0]["state"] == "waiting"
    await eventually(lambda: len(loads) == 2)
    await eventually(lambda: "connecting" in [report["state"] for report in editor.reports])
    mounts.end(1)
    await mounts.ended()


async def test_a_load_that_failed_is_tried_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "half_a_module.py").write_text("raise RuntimeError('the first load fails')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    with pytest.raises(RuntimeError):
        await sdk.import_sdk("half_a_module")
    (tmp_path / "half_a_module.py").write_text("")
    await asyncio.gather(sdk.import_sdk("half_a_module"), sdk.import_sdk("half_a_module"))


@pytest.mark.parametrize(
    "modules", ["http.app, mcp_tools_nvim.http.handlers, mcp_tools_nvim.process.lifecycle", "mounts.mount"]
)
def test_the_application_does_not_import_the_sdk(modules: str) -> None:
    heavy = "{'mcp', 'mcp_types', 'pydantic', 'anyio', 'starlette', 'httpx2'} & set(sys.modules)"
    code = f"import sys, mcp_tools_nvim.{modules}\nassert not {heavy}, {heavy}"
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
