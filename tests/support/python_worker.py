"""Editors with tools written in Python, and the two ways to call these."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from mcp import Client

from .bridge import Bridge, connect
from .nvim import ROOT, Nvim
from .results import error_of, text_of

SAMPLES = ROOT / "tests" / "support" / "python_tools"
INIT = f"vim.opt.runtimepath:append([[{SAMPLES}]])"
Way = Literal["mcp", "lua"]
STATUS = "return probe.python_worker.status()"
AT_WORK = """
local call = probe.executor():pending()[1]
return call and call.latest and true
"""
"""True when a function has started and reported progress."""

CALL = """
local key, name, args = ...
_G.Calls = _G.Calls or {}
local entry = { progress = {} }
_G.Calls[key] = entry
entry.handle = require('mcp-tools').call(name, args, {
  on_progress = function(progress)
    table.insert(entry.progress, progress.done)
  end,
}, function(result, err)
  entry.done, entry.result, entry.err = true, result, err
end)
"""
ANSWER = """
local entry = _G.Calls[...]
if not entry.done then
  return nil
end
return { result = entry.result, err = entry.err }
"""


@dataclass
class Answer:
    """The result of a call."""

    value: Any = None
    error: dict[str, Any] | None = None

    @property
    def fault(self) -> dict[str, Any]:
        """The error, which must exist."""
        assert self.error is not None, self
        return self.error


@dataclass
class Calling:
    """A running call."""

    task: asyncio.Task[Answer]
    cancel: Callable[[], Any]
    progress: list[float] = field(default_factory=list)
    """Values reported until the call ended (from Lua: available only then)."""


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def loaded(nvim: Nvim) -> None:
    """Waits until the Python tools are registered."""
    code = "return probe.registry():get('py_add') ~= nil"
    await nvim.wait_for(code, timeout=20_000)


class Caller:
    """One way to call tools."""

    def __init__(self, nvim: Nvim, client: Client | None) -> None:
        self.nvim = nvim
        self.client = client
        self._number = 0

    async def call(self, name: str, /, **args: Any) -> Answer:
        """Calls a tool and waits for the result."""
        return await self.start(name, **args).task

    def start(self, name: str, /, **args: Any) -> Calling:
        return self._over_mcp(name, args) if self.client else self._from_lua(name, args)

    def _over_mcp(self, name: str, args: dict[str, Any]) -> Calling:
        client = self.client
        assert client
        received: list[float] = []

        async def note(done: float, total: float | None, message: str | None) -> None:
            received.append(done)

        async def run() -> Answer:
            result = await client.call_tool(f"nvim_{name}", args, progress_callback=note)
            if result.is_error:
                meta = result.meta or {}
                return Answer(error=meta.get("mcp-tools.nvim/error") or error_of(result))
            text = text_of(result)
            with contextlib.suppress(ValueError):
                return Answer(json.loads(text))
            return Answer(text)

        task = asyncio.create_task(run())
        return Calling(task, task.cancel, received)

    def _from_lua(self, name: str, args: dict[str, Any]) -> Calling:
        self._number += 1
        key = f"{id(self)}-{self._number}"
        received: list[float] = []
        begun = asyncio.create_task(self.nvim.lua(CALL, key, name, args))

        async def run() -> Answer:
            await begun
            found = await self.nvim.wait_for(ANSWER, key, timeout=30_000)
            received.extend(await self.nvim.lua("return _G.Calls[...].progress", key))
            return Answer(found.get("result"), found.get("err"))

        async def cancel() -> None:
            await begun
            await self.nvim.lua("_G.Calls[...].handle:cancel()", key)

        tasks: list[asyncio.Task[None]] = []
        return Calling(
            asyncio.create_task(run()), lambda: tasks.append(asyncio.create_task(cancel())), received
        )


@contextlib.asynccontextmanager
async def caller(bridge: Bridge, way: Way, **options: Any) -> AsyncIterator[Caller]:
    """A caller over MCP or from Lua; `options` are those of the client."""
    if way == "lua":
        yield Caller(bridge.nvim, None)
        return
    async with connect(bridge, "sessions", **options) as client:
        yield Caller(bridge.nvim, client)


async def worker_status(nvim: Nvim) -> dict[str, Any]:
    return await nvim.lua(STATUS)
