"""Tasks: long calls of clients that support them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.support import bridge
from tests.support.bridge import Bridge
from tests.support.nvim import Spawn
from tests.support.raw import STATELESS_META, STATELESS_VERSION, Raw

TOOLS = """
Seen = {}
local function tool(name, more)
  mcp_tools.register(vim.tbl_extend('error', { name = name, description = name }, more))
end
tool('slow', { annotations = { read_only = true }, run = function(ctx)
  ctx:on_cancel(function(reason) table.insert(Seen, reason) end)
  ctx:progress(1, 2, 'half way')
  ctx:await(function(done) Finish = done end)
  return 'the result'
end })
tool('asks', { annotations = { read_only = true }, run = function(ctx)
  ctx:await(function(done) vim.defer_fn(done, 500) end)
  local answer = ctx:elicit('Name?', { type = 'object', properties = { name = { type = 'string' } } })
  return answer and answer.action
end })
tool('writes', { annotations = { destructive = true }, execute = function(ctx) ctx('written') end })
"""
OPTIONS = "{ ui = { approval = 'select' } }"
SUPPORT: dict[str, Any] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
META = "io.modelcontextprotocol/"


class TaskClient(Raw):
    """A client without a session that declares tasks by default."""

    def __init__(self, bridge: Bridge) -> None:
        super().__init__(bridge)
        self.name = "tasker"
        self.capabilities = SUPPORT

    async def request(self, method: str, routed: str, **params: Any) -> dict[str, Any]:
        client = {"name": self.name, "version": "1"}
        meta = STATELESS_META | {META + "clientCapabilities": self.capabilities, META + "clientInfo": client}
        headers = {"MCP_Protocol_Version": STATELESS_VERSION, "Mcp_Method": method, "Mcp_Name": routed}
        message = self.message(method, {**params, "_meta": meta})
        _, answer = await self.send(message, Mcp_Session_Id=None, **headers)
        return dict(answer)

    async def call(self, tool: str) -> dict[str, Any]:
        answer = await self.request("tools/call", f"nvim_{tool}", name=f"nvim_{tool}", arguments={})
        return dict(answer["result"])

    async def task(self, method: str, id_: str, **params: Any) -> dict[str, Any]:
        return await self.request(method, id_, taskId=id_, **params)

    async def until(self, id_: str, status: str) -> dict[str, Any]:
        async with asyncio.timeout(15):
            while True:
                task = (await self.task("tasks/get", id_))["result"]
                if task["status"] == status:
                    return dict(task)
                await asyncio.sleep(0.05)


@pytest.fixture
async def slow(spawn_nvim: Spawn) -> Bridge:
    """A bridge whose calls become tasks after 0.2 s."""
    setup = bridge.with_limits(OPTIONS, task_after=200)
    return await bridge.start(spawn_nvim, setup=setup, init=TOOLS)


@pytest.mark.slow
async def test_a_long_call_becomes_a_task_with_its_progress_and_result(slow: Bridge) -> None:
    async with TaskClient(slow) as client:
        task = await client.call("slow")
        assert (task["resultType"], task["status"], task["statusMessage"]) == ("task", "working", "half way")
        assert len(task["taskId"]) == 32
        await slow.nvim.lua("Finish()")
        done = await client.until(task["taskId"], "completed")
        assert done["result"]["content"] == [{"type": "text", "text": "the result"}]
        assert (await client.until(task["taskId"], "completed"))["ttlMs"] > 0


@pytest.mark.slow
async def test_cancelling_a_task_reaches_the_tool(slow: Bridge) -> None:
    async with TaskClient(slow) as client:
        task = await client.call("slow")
        for _ in range(2):  # Claude Code sends it twice
            answer = await client.task("tasks/cancel", task["taskId"])
            assert answer["result"]["resultType"] == "complete"
        await client.until(task["taskId"], "cancelled")
        assert await slow.nvim.wait_for("return Seen[1] and Seen") == ["client"]


async def test_a_task_that_waits_for_the_user_says_so(slow: Bridge) -> None:
    """Nobody but the user in Neovim is asked: the client did not declare that it can ask."""
    await slow.nvim.attach_ui()
    await slow.nvim.lua(
        "vim.ui.select = function(items, _, choose) Allow = function() choose(items[1], 1) end end"
    )
    async with TaskClient(slow) as client:
        task = await client.call("writes")
        assert (task["status"], task["statusMessage"]) == ("working", "waiting for the user in Neovim")
        await slow.nvim.lua("Allow()")
        done = await client.until(task["taskId"], "completed")
        assert done["result"]["content"][0]["text"] == "written"


@pytest.mark.slow
async def test_a_question_that_is_cancelled_ends_the_task(slow: Bridge) -> None:
    async with TaskClient(slow) as client:
        client.capabilities = {**SUPPORT, "elicitation": {}}
        task = await client.call("asks")
        asked = await client.until(task["taskId"], "input_required")
        assert [request["method"] for request in asked["inputRequests"].values()] == ["elicitation/create"]
        await client.task("tasks/cancel", task["taskId"])
        ended = await client.until(task["taskId"], "cancelled")
        assert ended["ttlMs"] > 0
        assert "inputRequests" not in ended


@pytest.mark.slow
async def test_only_the_client_that_made_the_call_sees_its_task(slow: Bridge) -> None:
    async with TaskClient(slow) as client, TaskClient(slow) as other:
        task = await client.call("slow")
        other.name = "someone else"
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            assert (await other.task(method, task["taskId"]))["error"]["code"] == -32602
        assert (await client.task("tasks/get", "0" * 32))["error"]["code"] == -32602
        await slow.nvim.lua("Finish()")
        await client.until(task["taskId"], "completed")


@pytest.mark.slow
async def test_other_clients_wait_for_the_result(slow: Bridge) -> None:
    async with TaskClient(slow) as client, Raw(slow) as session:
        client.capabilities = {}
        call = asyncio.create_task(client.call("slow"))
        await slow.nvim.wait_for("return Finish ~= nil")
        await asyncio.sleep(0.4)
        assert not call.done()
        await slow.nvim.lua("Finish()")
        assert (await call)["content"] == [{"type": "text", "text": "the result"}]
        assert (await client.task("tasks/get", "x"))["error"]["code"] == -32021
        await session.initialize(capabilities=SUPPORT)
        _, answer = await session.send(session.message("tasks/get", {"taskId": "x"}))
        assert answer["error"]["code"] == -32601


@pytest.mark.slow
async def test_leaving_before_there_is_a_task_cancels_the_call(spawn_nvim: Spawn) -> None:
    patient = await bridge.start(spawn_nvim, setup=OPTIONS, init=TOOLS)
    async with TaskClient(patient) as client:
        call = asyncio.create_task(client.call("slow"))
        await patient.nvim.wait_for("return Finish ~= nil")
        call.cancel()
        assert await patient.nvim.wait_for("return Seen[1] and Seen") == ["disconnected"]
