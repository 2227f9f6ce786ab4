"""Calls and subscriptions of the bridge over the real RPC verbs of the plugin."""

from __future__ import annotations

import asyncio
import json

import pytest

from mcp_tools_nvim.calls.runner import Calls
from mcp_tools_nvim.errors import Code
from mcp_tools_nvim.neovim.nvim import NvimEditor
from mcp_tools_nvim.values import CallRequest, ClientInfo, HelloInfo, Outcome, Parked, Sender
from tests.support.memory import Seen
from tests.support.nvim import Nvim, Spawn

INIT = """
local tools = require('mcp-tools')
tools.setup({ bridge = { autostart = false }, approval = { default = 'allow' } })
local about = { name = 'asks', description = 'Asks', annotations = { read_only = true } }
function about.execute(ctx)
  local count = 0
  ctx:elicit('Who?', { type = 'object' }, function(answer, err)
    count = count + 1
    if err then return ctx(nil, err) end
    ctx({ answer.content.name, count })
  end)
end
tools.register(about)
"""


async def test_repeated_and_unknown_answers_change_nothing(spawn_nvim: Spawn) -> None:
    nvim = await spawn_nvim(init_lua=INIT)
    editor = await NvimEditor.open(str(nvim.socket))
    hello = await editor.hello(HelloInfo(1, 2, 2, "none", {"bridge": "b"}))
    calls, seen = Calls(editor, hello.settings), Seen()
    reply = await editor.answer("never-1", 1, {})
    assert reply.outcome.error.code is Code.NOT_FOUND
    request = CallRequest("asks", {}, Sender(ClientInfo("t", "1"), capabilities={"elicitation": {}}))
    parked = await calls.run_attempt(request, seen)
    assert isinstance(parked, Parked)
    answers = {"answer": {"result": {"action": "accept", "content": {"name": "x"}}}}
    for seq in (2, 0):
        still = await editor.answer(parked.task_id, seq, answers)
        assert (still.state, still.deadline, still.inputs) == ("waiting_input", None, parked.inputs)
    end = await calls.resume(parked.task_id, 1, answers, seen)
    assert isinstance(end, Outcome)
    assert json.loads(end.text) == ["x", 1]
    assert await calls.resume(parked.task_id, 1, answers, seen) == end
    editor.close()
    await editor.closed


URI = "nvim://buffer/a.lua"
OPEN = """
require('mcp-tools').setup({ bridge = { autostart = false } })
vim.cmd.edit(vim.uv.cwd() .. '/a.lua')
"""
WATCHING = """
local count = 0
for _, command in ipairs(vim.api.nvim_get_autocmds({ event = 'BufReadPost' })) do
  count = count + (command.desc == 'mcp-tools: a client has subscribed' and 1 or 0)
end
return count
"""


async def attach(nvim: Nvim) -> tuple[NvimEditor, asyncio.Queue[str]]:
    editor = await NvimEditor.open(str(nvim.socket))
    await editor.hello(HelloInfo(1, 2, 2, "none", {"bridge": "b"}))
    received: asyncio.Queue[str] = asyncio.Queue()
    editor.on("updated", received.put_nowait)
    return editor, received


@pytest.mark.slow
async def test_the_subscriptions_of_a_closed_channel_end_and_others_stay(spawn_nvim: Spawn) -> None:
    nvim = await spawn_nvim(init_lua=OPEN)
    (one, _), (other, received) = await attach(nvim), await attach(nvim)
    assert await one.subscribe("nvim://cursor") is None
    assert await one.subscribe(URI) is None
    assert await other.subscribe(URI) is None
    one.close()
    await one.closed
    gone = "return #vim.tbl_filter(function(c) return c.desc == 'mcp-tools: a client has subscribed' end, "
    await nvim.wait_for(gone + "vim.api.nvim_get_autocmds({ event = 'CursorMoved' })) == 0", timeout=10_000)
    await nvim.lua("vim.api.nvim_buf_set_lines(0, 0, 1, false, { 'x' })")
    assert await asyncio.wait_for(received.get(), 2) == URI
    other.close()
    await other.closed
    await nvim.wait_for(WATCHING.replace("return count", "return count == 0"), timeout=10_000)
