"""One definition, every host: what a tool does looks the same, whoever calls it."""

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

HOSTS = {
    "mcp": "mcp",
    "call": "nvim",
    "command": "command",
    "assistant": "assistant",
    "codecompanion": "codecompanion",
    "avante": "avante",
    "mcphub": "mcphub",
}
"""Each with what `ctx.host` is there."""
BY_NAME = ("mcp", "call", "command", "assistant")
"""Hosts that may call any name; the others know what they were given."""
OF_BYTES = ("call", "command")
"""Lua may have any bytes, and so may a window."""
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
    """A call, and what every host must see of it."""

    tool: str
    arguments: dict[str, Any] = field(default_factory=dict)
    ok: bool = False
    says: tuple[str, ...] = ()
    data: Any = None
    code: str | None = None
    kind: str | None = None
    """Of its error, by the guards: validation, domain or other."""


CASES = {
    "result": Case("says", {"value": "hello"}, ok=True, says=("hello to {host}, 1 times",)),
    "data": Case("data", ok=True, data={"list": [1, 2.5], "empty": []}),
    "content": Case("shows", ok=True, says=("a picture",)),
    "wrong argument": Case(
        "says",
        {"value": 3},
        says=("value: must be string",),
        code="validation_error",
        kind="validation",
    ),
    "several wrong arguments": Case(
        "says",
        {"times": "often"},
        says=("value: is required", "times: must be integer"),
        code="validation_error",
        kind="validation",
    ),
    "failure": Case("fails", says=("not today",), code="tool_error", kind="domain"),
    "failure with a code": Case("misses", says=("no such thing",), code="not_found", kind="domain"),
    "result that is an error": Case("refuses", says=("it went wrong",)),
    "exception": Case("throws", says=("a fault of the code",), code="execution_error", kind="other"),
    "broken promise": Case("promises", says=("output_schema",), code="invalid_output", kind="other"),
    "timeout": Case("tarries", says=("no result within 30 ms",), code="timeout", kind="other"),
    "denied": Case("denied", says=("not run",), code="access_denied", kind="other"),
}


class Call:
    """A call by a host of the editor."""

    def __init__(self, bridge: Bridge, host: str) -> None:
        self.nvim, self.host = bridge.nvim, host

    async def begin(self, tool: str, arguments: dict[str, Any]) -> None:
        await self.nvim.lua("callers[...](select(2, ...))", self.host, tool, arguments)

    async def way(self) -> tuple[list[str], list[Any]]:
        """Progress and intermediate states, once there are both."""
        seen = await self.nvim.wait_for(
            f"local seen = (function() {SEEN} end)() return seen.progress[1] and seen.states[1] and seen"
        )
        return seen["progress"], seen["states"]

    async def stop(self) -> None:
        await self.nvim.lua("_G.seen.stop()")

    async def end(self) -> dict[str, Any]:
        """What it came to: `ok`, `text`, and `code` and `kind` where the host tells them."""
        outcome: dict[str, Any] = await self.nvim.wait_for(f"return (function() {SEEN} end)().outcome")
        return outcome


class ClientCall(Call):
    """A call by a client of MCP."""

    def __init__(self, bridge: Bridge) -> None:
        super().__init__(bridge, "mcp")
        self.bridge = bridge
        self.messages: asyncio.Queue[str] = asyncio.Queue()
        self.calling: asyncio.Task[Any] | None = None

    async def begin(self, tool: str, arguments: dict[str, Any]) -> None:
        self.task = asyncio.create_task(self._whole(tool, arguments))

    async def _whole(self, tool: str, arguments: dict[str, Any]) -> Any:
        async def listen(_done: float, _total: float | None, message: str | None) -> None:
            self.messages.put_nowait(message or "")

        with closing_quietly() as closing:
            async with connect(self.bridge, "sessions") as client:
                self.calling = asyncio.create_task(
                    client.call_tool(f"nvim_{tool}", arguments, progress_callback=listen)
                )
                await asyncio.wait([self.calling])
                if (
                    self.calling.cancelled()
                ):  # the SDK says so in a request of its own, which must have gone out
                    await self.nvim.wait_for("return _G.stopped")
                closing.set()
        return self.calling

    async def way(self) -> tuple[list[str], list[Any]]:
        """A state is progress here: nothing else in MCP says it."""
        async with asyncio.timeout(5):
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
    """One for all tests here."""
    return await keep(nvim_version, setup=SETUP, init=INIT)


@pytest_asyncio.fixture(params=HOSTS, loop_scope="session")
async def call(request: pytest.FixtureRequest, bridge: Bridge) -> Call:
    """A call that has not begun."""
    await bridge.nvim.lua("_G.begun, _G.stopped, _G.go_on = nil, nil, nil")
    return ClientCall(bridge) if request.param == "mcp" else Call(bridge, request.param)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_outcome(call: Call, case: Case) -> None:
    """Results, faults of arguments, failures, exceptions, denials and timeouts are the same everywhere."""
    await call.begin(case.tool, case.arguments)
    outcome = await call.end()
    assert outcome["ok"] is case.ok, outcome
    for part in case.says:
        assert part.format(host=HOSTS[call.host]) in outcome["text"]
    if case.data is not None:
        assert json.loads(outcome["text"]) == case.data
    assert "traceback" not in outcome["text"] or call.host == "command"  # a person has use for it
    assert outcome.get("code") in (None, case.code)
    assert outcome.get("kind") in (None, case.kind)
    if call.host in ("call", "assistant"):
        assert (outcome.get("code"), outcome.get("kind")) == (case.code, case.kind)


async def test_way(call: Call) -> None:
    """Progress and intermediate states come while the tool runs, and then its result."""
    await call.begin("steps", {})
    if call.host == "mcphub":  # which has no word for them
        await call.nvim.wait_for("return _G.go_on ~= nil")
    else:
        assert await call.way() == (["half"], ["so far"])
    await call.nvim.lua("_G.go_on()")
    outcome = await call.end()
    assert (outcome["ok"], outcome["text"]) == (True, "all")


async def test_stop(call: Call) -> None:
    """Who stops a call stops its tool, and sees it end as no success."""
    await call.begin("waits", {})
    await call.nvim.wait_for("return _G.begun")
    if call.host == "mcphub":  # which cannot; the person can
        await call.nvim.lua("vim.cmd('McpTools cancel')")
    else:
        await call.stop()
    reason = await call.nvim.wait_for("return _G.stopped")
    assert reason == ("client" if call.host == "mcp" else "user")
    outcome = await call.end()
    assert not outcome["ok"]
    assert "cancelled" in outcome["text"]


@pytest.mark.parametrize("call", [host for host in HOSTS if host not in OF_BYTES], indirect=True)
async def test_bytes(call: Call) -> None:
    """Bytes that no text can hold are an error that says where they are, where text must be made of them."""
    await call.begin("garbles", {})
    outcome = await call.end()
    assert not outcome["ok"]
    assert "result.inner[1]: bytes that are not UTF-8" in outcome["text"]


@pytest.mark.parametrize("call", BY_NAME, indirect=True)
async def test_unknown(call: Call) -> None:
    """A name that there is not is a fault of who calls it."""
    await call.begin("sayz", {"value": "x"})
    outcome = await call.end()
    assert not outcome["ok"]
    assert "says" in outcome["text"]
    assert outcome["code"] == "unknown_tool"
    assert outcome.get("kind", "validation") == "validation"
