"""One definition, every host: what a tool does looks the same, whoever calls it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest

from tests.support.bridge import Bridge, connect
from tests.support.nvim import ROOT
from tests.support.results import text_of

HOSTS = ["mcp", "call", "command", "codecompanion"]
INIT = f"dofile([[{ROOT / 'tests' / 'e2e' / 'hosts.lua'}]])"
SEEN = """
local seen = vim.deepcopy(_G.seen)
seen.stop = nil
if seen.outcome and type(seen.outcome.text) ~= 'string' then
  seen.outcome.text = vim.inspect(seen.outcome.text)
end
return seen.outcome and seen
"""


@dataclass
class Seen:
    """What a host has seen of a call; `code` where it tells one."""

    ok: bool
    text: str
    code: str | None = None
    progress: list[tuple[float, str | None]] = field(default_factory=list)
    states: list[Any] = field(default_factory=list)


class Host:
    """One way to call a tool."""

    def __init__(self, bridge: Bridge, name: str) -> None:
        self.bridge = bridge
        self.name = name

    async def call(self, tool: str, stop: bool = False, **arguments: Any) -> Seen:
        """A call to its end; with `stop` it is called off once it runs."""
        if self.name == "mcp":
            return await self._by_client(tool, stop, arguments)
        nvim = self.bridge.nvim
        await nvim.lua("hosts[...](select(2, ...))", self.name, tool, arguments)
        if stop:
            await nvim.wait_for("return _G.begun")
            await nvim.lua("_G.seen.stop()")
            if self.name == "codecompanion":  # which waits for nothing of what it has stopped
                await nvim.wait_for("return _G.stopped")
        found = await nvim.wait_for(SEEN)
        outcome = found["outcome"]
        progress = [(each["done"], each.get("message")) for each in found["progress"]]
        return Seen(
            outcome["ok"], outcome.get("text", ""), outcome.get("code"), progress, list(found["states"])
        )

    async def _by_client(self, tool: str, stop: bool, arguments: dict[str, Any]) -> Seen:
        progress: list[tuple[float, str | None]] = []

        async def listen(done: float, total: float | None, message: str | None) -> None:
            progress.append((done, message))

        # A message that comes while the SDK's client closes breaks its reader.
        with contextlib.suppress(BaseExceptionGroup, anyio.BrokenResourceError):
            return await self._in_session(tool, stop, arguments, progress, listen)
        return Seen(False, "cancelled", "cancelled")

    async def _in_session(
        self, tool: str, stop: bool, arguments: dict[str, Any], progress: list[Any], listen: Any
    ) -> Seen:
        async with connect(self.bridge, "sessions") as client:
            calling = asyncio.create_task(
                client.call_tool(f"nvim_{tool}", arguments, progress_callback=listen)
            )
            if stop:
                await self.bridge.nvim.wait_for("return _G.begun")
                calling.cancel()
                await asyncio.wait([calling])
                return Seen(False, "cancelled", "cancelled")
            result = await calling
        structured = result.structured_content or {}
        return Seen(not result.is_error, text_of(result), structured.get("code"), progress)


@pytest.fixture(params=HOSTS)
async def host(request: pytest.FixtureRequest, start_bridge: Callable[..., Awaitable[Bridge]]) -> Host:
    return Host(await start_bridge(init=INIT), request.param)


async def test_every_host(host: Host) -> None:
    """Results, faults in arguments, failures of the tool, what it throws, steps on the way, the end."""
    said = await host.call("says", value="hello")
    assert said.ok
    assert said.text == f"hello to {'nvim' if host.name == 'call' else host.name}"

    wrong = await host.call("says", value=3)
    assert not wrong.ok
    assert "value" in wrong.text
    assert "string" in wrong.text
    assert wrong.code in (None, "validation_error")

    failed = await host.call("fails")
    assert not failed.ok
    assert "not today" in failed.text
    assert failed.code in (None, "tool_error")

    threw = await host.call("throws")
    assert not threw.ok
    assert "traceback" not in threw.text
    assert threw.code in (None, "execution_error")

    steps = await host.call("steps")
    assert steps.ok
    assert steps.text == "all"
    assert (1, "half") in steps.progress
    if host.name == "mcp":
        assert len(steps.progress) >= 2  # where a tool is on its way is told as progress there
    else:
        assert steps.states == ["so far"]

    unknown = await host.call("nowhere") if host.name in ("call", "command") else None
    assert unknown is None or unknown.code == "unknown_tool"

    shown = await host.call("shows")
    assert shown.ok
    assert "a picture" in shown.text

    stopped = await host.call("waits", stop=True)
    assert not stopped.ok
    assert await host.bridge.nvim.wait_for("return _G.stopped")


async def test_who_is_to_blame(start_bridge: Callable[..., Awaitable[Bridge]]) -> None:
    """The guards tell arguments that do not fit from a matter that came out badly, and both from all else."""
    bridge = await start_bridge()
    sort = (
        "local e = require('mcp-tools').errors"
        " local err = { code = ..., message = 'm' }"
        " return { e.is_validation_failure(err), e.is_domain_failure(err) }"
    )
    for code, expected in {
        "validation_error": [True, False],
        "unknown_tool": [True, False],
        "tool_error": [False, True],
        "not_found": [False, True],
        "stale": [False, True],
        "execution_error": [False, False],
        "cancelled": [False, False],
        "access_denied": [False, False],
        "nothing": [False, False],
    }.items():
        assert await bridge.nvim.lua(sort, code) == expected
