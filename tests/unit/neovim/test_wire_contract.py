"""The bridge's calls on the plugin's own wire: both sides of the contract in one test."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from time import monotonic
from typing import Any

import pytest

from mcp_tools_nvim.calls.runner import Calls
from mcp_tools_nvim.errors import Code
from mcp_tools_nvim.neovim.nvim import NvimEditor
from mcp_tools_nvim.values import CallRequest, ClientInfo, HelloInfo, Outcome, Parked, Sender, Versions
from tests.support.memory import Seen
from tests.support.nvim import Nvim

INIT = """
local tools = require('mcp-tools')
tools.setup({ bridge = { autostart = false }, approval = { default = 'allow' } })
local function add(name, execute, more)
  tools.register(vim.tbl_extend('force', { name = name, description = name, needs_approval = false,
    annotations = { read_only = true }, execute = execute, timeout = 5000 }, more or {}))
end
add('now', function(ctx, args) ctx(args.v) end, { input_schema = { type = 'object' } })
add('later', function(ctx, args)
  vim.defer_fn(function() ctx(('x'):rep(args.size)) end, args.ms)
end, { input_schema = { type = 'object' } })
add('forever', function(ctx)
  ctx:on_cancel(function(reason) _G.cancelled = reason or 'yes' end)
end)
add('short', function() end, { timeout = 200 })
add('steps', function(ctx)
  ctx:log('info', { at = 1 })
  ctx:progress(1, 3, 'one')
  vim.defer_fn(function() ctx:progress(2, 3, 'two') ctx('end') end, 30)
end)
add('asks', function(ctx)
  local heard = 0
  ctx:elicit('Who?', { type = 'object' }, function(answer, err)
    heard = heard + 1
    if err then return ctx(nil, err) end
    ctx({ answer.content.name, heard })
  end)
end)
add('bad', function(ctx) ctx({ deep = { 'caf\\233' } }) end)
add('throws', function() error('at /home/me/secret') end)
add('busy', function(ctx)
  local till = vim.uv.hrtime() + 2.6e9
  while vim.uv.hrtime() < till do end
  ctx('after all')
end)
"""


class Setup:
    def __init__(self, nvim: Nvim, editor: NvimEditor, calls: Calls) -> None:
        self.nvim, self.editor, self.calls, self.seen = nvim, editor, calls, Seen()

    async def run(self, name: str, **arguments: Any) -> Outcome:
        return await self.calls.run(CallRequest(name, arguments, Sender(ClientInfo("t", "1"))), self.seen)

    async def held(self) -> Any:
        return await self.nvim.lua("return vim.tbl_count(probe.calls())")


@pytest.fixture
async def setup(spawn_nvim: Callable[..., Awaitable[Nvim]]) -> AsyncIterator[Setup]:
    nvim = await spawn_nvim(init_lua=INIT)
    editor = await NvimEditor.open(str(nvim.socket))
    hello = await editor.hello(HelloInfo(1, 2, 2, "none", Versions("b", "p", "s", "a", "m")))
    yield Setup(nvim, editor, Calls(editor, hello.settings))
    editor.close()
    await editor.closed


async def test_values_come_back_exactly(setup: Setup) -> None:
    """Numbers, nulls, empty lists and objects, text beyond ASCII survive both ways."""
    for value in (3.141592653589793, 2**53, -0.5, "hé", [], {"a": None, "b": [1, {"c": {}}]}, True):
        outcome = await setup.run("nvim_now", v=value)
        back = outcome.text if outcome.kind == "text" else json.loads(outcome.text)
        assert back == value
    assert (await setup.run("now")).kind == "empty"


async def test_pending_results_of_every_size(setup: Setup) -> None:
    """Below and above what rides in a wake; afterwards the registry holds nothing."""
    for size in (1, 65_536, 65_537, 2 << 20):
        assert len((await setup.run("later", ms=10, size=size)).text) == size
    await setup.nvim.wait_for("return vim.tbl_count(probe.calls()) == 0", timeout=1000)


async def test_progress_and_log(setup: Setup) -> None:
    """What the tool says on its way arrives, in order."""
    assert (await setup.run("steps")).text == "end"
    assert [p.done for p in setup.seen.progresses][-1] == 2
    assert setup.seen.logs == [("info", {"at": 1})]


async def test_the_editors_timeout(setup: Setup) -> None:
    """The tool's own timeout ends it, in time."""
    begun = monotonic()
    outcome = await setup.run("short")
    assert (outcome.state, outcome.error and outcome.error.code) == ("timed_out", Code.TIMEOUT)
    assert monotonic() - begun < 1


async def test_faults_of_tools(setup: Setup) -> None:
    """What is not UTF-8 is named with its path; what was thrown is an execution_error; unknown is unknown."""
    bad = await setup.run("bad")
    assert bad.error
    assert bad.error.code is Code.NOT_SERIALIZABLE
    assert "deep" in bad.error.message
    for name, code in (("throws", Code.EXECUTION_ERROR), ("absent", Code.UNKNOWN_TOOL)):
        outcome = await setup.run(name)
        assert outcome.error
        assert outcome.error.code is code


@pytest.mark.slow
async def test_a_tool_that_holds_the_main_thread_is_waited_for(setup: Setup) -> None:
    """It has started, so silence beyond start_by is no reason to give it up."""
    assert (await setup.run("busy")).text == "after all"


async def test_answers_to_nothing(setup: Setup) -> None:
    """An answer that comes twice or for no call changes nothing."""
    reply = await setup.editor.answer("never-1", 1, {})
    assert reply.outcome is not None
    assert reply.outcome.error is not None
    assert reply.outcome.error.code is Code.NOT_FOUND
    request = CallRequest("asks", {}, Sender(ClientInfo("t", "1"), capabilities={"elicitation": {}}))
    parked = await setup.calls.run_attempt(request, setup.seen)
    assert isinstance(parked, Parked)
    answers = {"answer": {"result": {"action": "accept", "content": {"name": "x"}}}}
    for seq in (2, 0):
        still = await setup.editor.answer(parked.task_id, seq, answers)
        assert (still.state, still.deadline, still.inputs) == ("waiting_input", None, parked.inputs)
    end = await setup.calls.resume(parked.task_id, 1, answers, setup.seen)
    assert isinstance(end, Outcome)
    assert json.loads(end.text) == ["x", 1]
    assert await setup.calls.resume(parked.task_id, 1, answers, setup.seen) == end


async def test_what_a_client_lacks(setup: Setup) -> None:
    """The error names the capabilities, in the form in which clients declare them."""
    outcome = await setup.run("asks")
    assert outcome.error is not None
    assert outcome.error.required == {"elicitation": {}}
