"""`mcp-tools stdio` in the era without `initialize`: requests that carry the protocol version in `_meta`."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.support import bridge, processes
from tests.support.bridge import Bridge
from tests.support.nvim import ROOT, Home, Nvim
from tests.support.raw import STATELESS_VERSION
from tests.support.results import text_of

pytestmark = [pytest.mark.slow]

PROGRAM = [sys.executable, str(ROOT / "bridge" / "mcp_tools_nvim"), "stdio"]
TOOLS = """
Seen = {}
local function tool(name, more)
  mcp_tools.register(vim.tbl_extend('error', { name = name, description = name }, more))
end
tool('echo', { annotations = { read_only = true }, args = { text = { type = 'string' } },
  execute = function(ctx, args) ctx(args.text or '') end })
tool('routed', { annotations = { read_only = true },
  args = { where = { type = 'string', ['x-mcp-header'] = 'Where' } },
  execute = function(ctx, args) ctx(args.where) end })
tool('who', { annotations = { read_only = true }, execute = function(ctx)
  ctx(vim.json.encode({ client = ctx.client.name, session = ctx.session }))
end })
tool('slow', { annotations = { read_only = true }, run = function(ctx)
  ctx:on_cancel(function(reason) table.insert(Seen, reason) end)
  ctx:progress(1, 2, 'half way')
  ctx:await(function(done) Finish = done end)
  return 'the result'
end })
tool('asks', { annotations = { read_only = true }, run = function(ctx)
  local answer = ctx:elicit('Name?', { type = 'object', properties = { name = { type = 'string' } } })
  return answer and answer.content and answer.content.name
end })
tool('writes', { annotations = { destructive = true }, execute = function(ctx) ctx('written') end })
"""
CLIENTS = "(mcp_tools.status().sessions or { clients = {} }).clients"
META = "io.modelcontextprotocol/"
TASKS: dict[str, Any] = {"extensions": {META + "tasks": {}}, "elicitation": {"form": {}}}


class Relay:
    """A client that writes frames to `mcp-tools stdio`; it names itself only if it has a `name`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.capabilities: dict[str, Any] = TASKS
        self.name: str | None = None
        self.received: list[dict[str, Any]] = []
        self._arrived = asyncio.Condition()
        self._ids = 0
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stdout
        while line := await self.process.stdout.readline():
            async with self._arrived:
                self.received.append(json.loads(line))
                self._arrived.notify_all()

    def write(self, **message: Any) -> None:
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def request(self, method: str, id_: Any = None, meta: dict[str, Any] | None = None, **params: Any) -> Any:
        """Sends a request; returns its id."""
        self._ids += 1
        id_ = self._ids if id_ is None else id_
        declared = {
            META + "protocolVersion": STATELESS_VERSION,
            META + "clientCapabilities": self.capabilities,
        }
        if self.name is not None:
            declared[META + "clientInfo"] = {"name": self.name, "version": "1"}
        self.write(id=id_, method=method, params={**params, "_meta": {**declared, **(meta or {})}})
        return id_

    async def wait_for(self, found: Callable[[dict[str, Any]], Any], since: int = 0) -> dict[str, Any]:
        """Returns the first message for which `found` is true."""
        async with asyncio.timeout(20), self._arrived:
            while not (matches := list(filter(found, self.received[since:]))):
                await self._arrived.wait()
        return matches[0]

    async def answer(self, id_: Any) -> dict[str, Any]:
        return await self.wait_for(lambda message: message.get("id") == id_ and "method" not in message)

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        return await self.answer(self.request(method, **params))

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        answer = await self.ask("tools/call", name=f"nvim_{tool}", arguments=arguments)
        assert "result" in answer, answer
        return dict(answer["result"])

    async def listen(self) -> str:
        """Subscribes to changes of the list of tools; returns the id of the subscription."""
        id_ = self.request("subscriptions/listen", "listen:0", notifications={"toolsListChanged": True})
        acknowledged = await self.wait_for(lambda message: subscription_of(message) == id_)
        assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
        assert acknowledged["params"]["notifications"] == {"toolsListChanged": True}
        return str(id_)

    async def changed(self, subscription: str, since: int) -> None:
        """Waits for a change of the list of tools, after the first `since` messages."""
        await self.wait_for(
            lambda message: (
                message.get("method") == "notifications/tools/list_changed"
                and subscription_of(message) == subscription
            ),
            since,
        )

    async def task(self, id_: str, status: str) -> dict[str, Any]:
        """Polls a task until it has a status."""
        async with asyncio.timeout(15):
            while True:
                task = (await self.ask("tasks/get", taskId=id_))["result"]
                if task["status"] == status:
                    return dict(task)
                await asyncio.sleep(0.05)

    async def names(self) -> set[str]:
        return {tool["name"] for tool in (await self.ask("tools/list"))["result"]["tools"]}


def subscription_of(message: dict[str, Any]) -> Any:
    return (message.get("params") or {}).get("_meta", {}).get(META + "subscriptionId")


def environment(home: Home) -> dict[str, str]:
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("NVIM", "MCP_", "CLAUDE"))
    }
    return kept | home.environment()


@contextlib.asynccontextmanager
async def relay(home: Home, **env: str) -> AsyncIterator[Relay]:
    pipe = asyncio.subprocess.PIPE
    process = await processes.start(
        *PROGRAM, cwd=home.make("cwd"), env=environment(home) | env, stdin=pipe, stdout=pipe
    )
    client = Relay(process)
    try:
        yield client
    finally:
        process.stdin.close()
        async with asyncio.timeout(10):
            assert await process.wait() == 0


Start = Callable[..., Awaitable[Bridge]]


@pytest.fixture
def start(spawn_nvim: Callable[..., Awaitable[Nvim]]) -> Start:
    """Starts a bridge whose calls become tasks after 0.3 s."""

    async def start() -> Bridge:
        setup = bridge.with_limits("{ ui = { approval = 'select' } }", task_after=300)
        return await bridge.start(spawn_nvim, setup=setup, init=TOOLS)

    return start


async def test_a_client_discovers_lists_and_calls(start: Start, home: Home) -> None:
    """The bridge knows it by a session, as the name and the list of clients show."""
    made = await start()
    async with relay(home, CLAUDE_CODE_SESSION_ID="x") as client:
        found = (await client.ask("server/discover"))["result"]
        assert (found["supportedVersions"], found["resultType"]) == ([STATELESS_VERSION], "complete")
        assert META + "tasks" in found["capabilities"]["extensions"]
        assert "nvim_echo" in await client.names()
        assert (await client.call("echo", text="täxt"))["content"][0]["text"] == "täxt"
        assert (await client.call("routed", where="here"))["content"][0]["text"] == "here"
        unknown = await client.ask("tools/call", name="nvim_\u00e9\n", arguments={})
        assert "Unknown tool" in str(unknown)
        assert (await client.ask("nonsense"))["error"]["code"] == -32601
        first = json.loads((await client.call("who"))["content"][0]["text"])
        assert first == json.loads((await client.call("who"))["content"][0]["text"])
        assert (first["client"], len(first["session"]) > 16) == ("claude-code", True)
        (shown,) = await made.nvim.wait_for(f"return #{CLIENTS} == 1 and {CLIENTS}")
        assert shown["name"] == "claude-code"
        status = await client.ask("tools/call", name="nvim_connection_status", arguments={})
        assert "is connected" in status["result"]["content"][0]["text"]
        assert status["result"]["resultType"] == "complete"
        async with relay(home) as other:
            other.name = "other"
            second = json.loads((await other.call("who"))["content"][0]["text"])
            assert second["client"] == "other"
            assert second["session"] != first["session"]
    await made.nvim.wait_for(f"return #{CLIENTS} == 0")


async def test_a_long_call_is_a_task_of_its_client(start: Start, home: Home) -> None:
    made = await start()
    async with relay(home) as client, relay(home) as other:
        id_ = client.request("tools/call", name="nvim_slow", arguments={}, meta={"progressToken": "p"})
        progress = await client.wait_for(lambda message: message.get("method") == "notifications/progress")
        assert (progress["params"]["progressToken"], progress["params"]["message"]) == ("p", "half way")
        task = (await client.answer(id_))["result"]
        assert (task["resultType"], task["status"]) == ("task", "working")
        assert (await other.ask("tasks/get", taskId=task["taskId"]))["error"]["code"] == -32602
        await made.nvim.lua("Finish()")
        done = await client.task(task["taskId"], "completed")
        assert done["result"]["content"] == [{"type": "text", "text": "the result"}]
        task = await client.call("slow")
        assert (await client.ask("tasks/cancel", taskId=task["taskId"]))["result"]["resultType"] == "complete"
        await client.task(task["taskId"], "cancelled")
        assert await made.nvim.wait_for("return Seen[1] and Seen", timeout=15_000) == ["client"]
        assert (await client.call("slow"))["resultType"] == "task"
    assert await made.nvim.wait_for("return Seen[2] and Seen", timeout=15_000) == ["client", "session_closed"]


async def test_a_question_is_a_result_that_the_client_answers(start: Start, home: Home) -> None:
    await start()
    async with relay(home) as client:
        asked = await client.call("asks")
        assert asked["resultType"] == "input_required"
        ((key, question),) = asked["inputRequests"].items()
        assert question["method"] == "elicitation/create"
        answer = await client.ask(
            "tools/call",
            name="nvim_asks",
            arguments={},
            requestState=asked["requestState"],
            inputResponses={key: {"action": "accept", "content": {"name": "Ann"}}},
        )
        assert answer["result"]["content"][0]["text"] == "Ann"


async def test_an_approval_for_the_session_is_that_of_one_client(start: Start, home: Home) -> None:
    made = await start()
    await made.nvim.attach_ui()
    await made.nvim.lua(
        "Asked = 0 vim.ui.select = function(items, opts, choose) Asked = Asked + 1"
        " for i, item in ipairs(items) do"
        " if opts.format_item(item):find('Allow every') then return choose(item, i) end end end"
    )
    async with relay(home, CLAUDE_CODE_SESSION_ID="x") as client:
        client.capabilities = {"extensions": TASKS["extensions"]}
        for _ in range(2):
            assert (await client.call("writes"))["content"][0]["text"] == "written"
        assert await made.nvim.lua("return Asked") == 1
        async with relay(home, CLAUDE_CODE_SESSION_ID="y") as other:
            other.capabilities = client.capabilities
            assert (await other.call("writes"))["content"][0]["text"] == "written"
        assert await made.nvim.lua("return Asked") == 2


async def test_a_cancelled_request_ends_without_an_answer(start: Start, home: Home) -> None:
    made = await start()
    async with relay(home) as client:
        client.capabilities = {}
        id_ = client.request("tools/call", name="nvim_slow", arguments={})
        await made.nvim.wait_for("return Finish ~= nil", timeout=15_000)
        client.write(method="notifications/cancelled", params={"requestId": id_})
        assert await made.nvim.wait_for("return Seen[1] and Seen", timeout=15_000) == ["disconnected"]
        client.write(method="notifications/cancelled", params={"requestId": "unknown"})
        assert (await client.call("echo", text="x"))["content"][0]["text"] == "x"
        subscription = await client.listen()
        client.write(method="notifications/cancelled", params={"requestId": subscription})
        assert (await client.call("echo", text="y"))["content"][0]["text"] == "y"
        before = len(client.received)
        await made.nvim.lua("mcp_tools.unregister('echo')")
        assert "nvim_echo" not in await client.names()
        await asyncio.sleep(0.5)
        methods = [message["method"] for message in client.received[before:] if "method" in message]
        assert methods == []
        assert not [message for message in client.received if message.get("id") in (id_, subscription)]


async def test_a_subscription_and_the_session_outlive_the_bridge_and_the_editor(
    start: Start, home: Home
) -> None:
    """Without an editor the client is served by the relay, as in a session."""
    async with relay(home) as client:
        found = (await client.ask("server/discover"))["result"]
        assert (found["supportedVersions"], found["ttlMs"]) == ([STATELESS_VERSION], 0)
        subscription = await client.listen()
        assert await client.names() == {"nvim_connection_status"}
        assert "error" in await client.ask("tools/call", name="nvim_echo", arguments={})
        made = await start()
        await client.changed(subscription, 0)
        assert "nvim_echo" in await client.names()
        first = (await client.call("who"))["content"]
        before = len(client.received)
        await made.nvim.lua("mcp_tools.register({ name = 'new', description = 'd', execute = print })")
        await client.changed(subscription, before)
        before, pid = len(client.received), await made.pid()
        os.kill(pid, 9)
        await client.changed(subscription, before)
        assert await made.pid() != pid
        assert (await client.call("who"))["content"] == first, "the session is the same"
        before = len(client.received)
        await made.nvim.request("nvim_command", "McpTools restart")
        await client.changed(subscription, before)
        before = len(client.received)
        await made.nvim.stop()
        await client.changed(subscription, before)
        assert await client.names() == {"nvim_connection_status"}
        before = len(client.received)
        made = await start()
        await client.changed(subscription, before)
        assert (await client.call("echo", text="x"))["content"][0]["text"] == "x"
        assert len([message for message in client.received if message.get("id") == subscription]) == 0
        untagged = [
            message for message in client.received if "method" in message and not subscription_of(message)
        ]
        assert untagged == []


async def test_the_sdk_without_initialize(start: Start, home: Home) -> None:
    """A client that probes and has no tasks uses a session."""
    made = await start()
    server = StdioServerParameters(
        command=PROGRAM[0], args=PROGRAM[1:], env=environment(home), cwd=home.make("cwd")
    )
    for mode, version in ((STATELESS_VERSION, STATELESS_VERSION), ("auto", "2025-11-25")):
        async with Client(stdio_client(server), mode=mode) as client:
            assert client.protocol_version == version
            assert text_of(await client.call_tool("nvim_echo", {"text": mode})) == mode
            if version == STATELESS_VERSION:
                async with client.listen(tools_list_changed=True) as events, asyncio.timeout(10):
                    await made.nvim.lua("mcp_tools.unregister('writes')")
                    await anext(events)
