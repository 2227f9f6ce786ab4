"""A tool behaves the same for every caller: MCP clients, Lua, the user, other plugins."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

import pytest
import pytest_asyncio
from mcp import MCPError

from tests.support.bridge import Bridge, closing_quietly, connect
from tests.support.nvim import ROOT
from tests.support.results import text_of
from tests.support.shared import Keep

pytestmark = pytest.mark.asyncio(loop_scope="session")

BY_NAME = ("mcp", "call", "command", "assistant")
"""Callers that may call any name; the others call registered tools only."""
CALLERS = (*BY_NAME, "codecompanion", "avante", "mcphub")
OF_BYTES = ("call", "command")
"""Callers that accept bytes that are not UTF-8."""
INIT = f"dofile([[{ROOT / 'tests' / 'e2e' / 'callers.lua'}]])"
SETUP = "{ approval = { tools = { denied = 'deny' } } }"
SEEN = """
local seen = _G.seen
if seen.look then
  seen.look()
end
return { progress = seen.progress, states = seen.states, outcome = seen.outcome }
"""


@dataclass
class Case:
    """A call, and the outcome for every caller."""

    tool: str
    arguments: dict[str, Any] = field(default_factory=dict)
    ok: bool = False
    says: tuple[str, ...] = ()
    data: Any = None
    code: str | None = None
    kind: str | None = None
    """The kind of the error: validation, domain or other."""


def invalid(arguments: dict[str, Any], *says: str) -> Case:
    return Case("says", arguments, says=says, code="validation_error", kind="validation")


CASES = {
    "result": Case("says", {"value": "hello"}, ok=True, says=("hello to {host}, 1 times",)),
    "data": Case("data", ok=True, data={"list": [1, 2.5], "empty": []}),
    "content": Case("shows", ok=True, says=("a picture",)),
    "wrong argument": invalid({"value": 3}, "value: must be string"),
    "several wrong arguments": invalid({"times": "often"}, "value: is required", "times: must be integer"),
    "failure": Case("fails", says=("not today",), code="tool_error", kind="domain"),
    "failure with a code": Case("misses", says=("no such thing",), code="not_found", kind="domain"),
    "result that is an error": Case("refuses", says=("it went wrong",)),
    "exception": Case("throws", says=("a fault of the code",), code="execution_error", kind="other"),
    "broken promise": Case("promises", says=("output_schema",), code="invalid_output", kind="other"),
    "timeout": Case("tarries", says=("no result within 30 ms",), code="timeout", kind="other"),
    "denied": Case("denied", says=("not run",), code="access_denied", kind="other"),
}


class Call:
    def __init__(self, bridge: Bridge, caller: str) -> None:
        self.nvim, self.caller = bridge.nvim, caller

    async def begin(self, tool: str, arguments: dict[str, Any]) -> None:
        await self.nvim.lua("callers[...](select(2, ...))", self.caller, tool, arguments)

    async def updates(self) -> tuple[list[str], list[Any]]:
        """Progress and intermediate states, once there are both."""
        seen = await self.nvim.wait_for(
            f"local seen = (function() {SEEN} end)() return seen.progress[1] and seen.states[1] and seen"
        )
        return seen["progress"], seen["states"]

    async def stop(self) -> None:
        await self.nvim.lua("_G.seen.stop()")

    async def end(self) -> dict[str, Any]:
        """The outcome: `ok`, `text`, and `code` and `kind` where the caller has them."""
        return await self.nvim.wait_for(f"return (function() {SEEN} end)().outcome")


class ClientCall(Call):
    def __init__(self, bridge: Bridge) -> None:
        super().__init__(bridge, "mcp")
        self.bridge = bridge
        self.messages: asyncio.Queue[str] = asyncio.Queue()
        self.calling: asyncio.Task[Any] | None = None

    async def begin(self, tool: str, arguments: dict[str, Any]) -> None:
        self.task = asyncio.create_task(self._call(tool, arguments))

    async def _call(self, tool: str, arguments: dict[str, Any]) -> Any:
        async def listen(_done: float, _total: float | None, message: str | None) -> None:
            self.messages.put_nowait(message or "")

        with closing_quietly() as closing:
            async with connect(self.bridge, "sessions") as client:
                self.calling = asyncio.create_task(
                    client.call_tool(f"nvim_{tool}", arguments, progress_callback=listen)
                )
                await asyncio.wait([self.calling])
                if self.calling.cancelled():  # the SDK sends the cancellation in a request of its own
                    await self.nvim.wait_for("return _G.stopped")
                closing.set()
        return self.calling

    async def updates(self) -> tuple[list[str], list[Any]]:
        """States are progress in MCP."""
        async with asyncio.timeout(10):
            return [await self.messages.get()], [await self.messages.get()]

    async def stop(self) -> None:
        assert self.calling
        self.calling.cancel()

    async def end(self) -> dict[str, Any]:
        try:
            result = await (await self.task)
        except asyncio.CancelledError:
            return {"ok": False, "text": "cancelled"}
        except MCPError as fault:
            return {"ok": False, "text": fault.message, "code": {-32602: "unknown_tool"}[fault.code]}
        error = (result.meta or {}).get("mcp-tools.nvim/error") or result.structured_content or {}
        return {"ok": not result.is_error, "text": text_of(result), "code": error.get("code")}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def bridge(nvim_version: str, keep: Keep) -> Bridge:
    return await keep(nvim_version, setup=SETUP, init=INIT)


@pytest_asyncio.fixture(params=CALLERS, loop_scope="session")
async def call(request: pytest.FixtureRequest, bridge: Bridge) -> Call:
    await bridge.nvim.lua("_G.begun, _G.stopped, _G.proceed = nil, nil, nil")
    return ClientCall(bridge) if request.param == "mcp" else Call(bridge, request.param)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_outcomes_are_the_same_for_every_caller(call: Call, case: Case) -> None:
    await call.begin(case.tool, case.arguments)
    outcome = await call.end()
    assert outcome["ok"] is case.ok, outcome
    for part in case.says:
        assert part.format(host="nvim" if call.caller == "call" else call.caller) in outcome["text"]
    if case.data is not None:
        assert json.loads(outcome["text"]) == case.data
    assert "traceback" not in outcome["text"] or call.caller == "command"
    assert outcome.get("code") in (None, case.code)
    assert outcome.get("kind") in (None, case.kind)
    if call.caller in ("call", "assistant"):
        assert (outcome.get("code"), outcome.get("kind")) == (case.code, case.kind)


async def test_progress_and_states_arrive_while_the_tool_runs(call: Call) -> None:
    await call.begin("steps", {})
    if call.caller == "mcphub":  # has no progress
        await call.nvim.wait_for("return _G.proceed ~= nil")
    else:
        assert await call.updates() == (["half"], ["so far"])
    await call.nvim.lua("_G.proceed()")
    outcome = await call.end()
    assert (outcome["ok"], outcome["text"]) == (True, "all")


async def test_stopping_a_call_stops_its_tool(call: Call) -> None:
    await call.begin("waits", {})
    await call.nvim.wait_for("return _G.begun")
    if call.caller == "mcphub":  # cannot stop a call, but the user can
        await call.nvim.lua("vim.cmd('McpTools cancel all')")
    else:
        await call.stop()
    reason = await call.nvim.wait_for("return _G.stopped")
    assert reason == ("client" if call.caller == "mcp" else "user")
    outcome = await call.end()
    assert not outcome["ok"]
    assert "cancelled" in outcome["text"]


@pytest.mark.parametrize("call", [caller for caller in CALLERS if caller not in OF_BYTES], indirect=True)
async def test_bytes_that_are_not_text_are_an_error_with_their_path(call: Call) -> None:
    await call.begin("garbles", {})
    outcome = await call.end()
    assert not outcome["ok"]
    assert "result.inner[1]: bytes that are not UTF-8" in outcome["text"]


@pytest.mark.parametrize("call", BY_NAME, indirect=True)
async def test_an_unknown_name_is_the_callers_fault(call: Call) -> None:
    await call.begin("sayz", {"value": "x"})
    outcome = await call.end()
    assert (outcome["ok"], "says" in outcome["text"], outcome["code"]) == (False, True, "unknown_tool")
    assert outcome.get("kind", "validation") == "validation"
