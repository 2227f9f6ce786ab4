"""Calls of the bridge over the real RPC verbs of the plugin."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable

from mcp_tools_nvim.calls.runner import Calls
from mcp_tools_nvim.errors import Code
from mcp_tools_nvim.neovim.nvim import NvimEditor
from mcp_tools_nvim.values import CallRequest, ClientInfo, HelloInfo, Outcome, Parked, Sender, Versions
from tests.support.memory import Seen
from tests.support.nvim import Nvim

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


async def test_repeated_and_unknown_answers_change_nothing(
    spawn_nvim: Callable[..., Awaitable[Nvim]],
) -> None:
    nvim = await spawn_nvim(init_lua=INIT)
    editor = await NvimEditor.open(str(nvim.socket))
    hello = await editor.hello(HelloInfo(1, 2, 2, "none", Versions("b", "p", "s", "a", "m")))
    calls, seen = Calls(editor, hello.settings), Seen()
    reply = await editor.answer("never-1", 1, {})
    assert reply.outcome is not None
    assert reply.outcome.error is not None
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
