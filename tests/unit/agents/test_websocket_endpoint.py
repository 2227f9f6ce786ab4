"""An endpoint at the port, over a WebSocket."""

from __future__ import annotations

import asyncio
import json
import struct
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from aiohttp import WSMsgType

from mcp_tools_nvim.values import Limits, Settings
from tests.support.served import JSON_AND_SSE, TOKEN, Served, eventually, served

from .agents import HTTP, INITIALIZE, INITIALIZED, SERVER, SOCKET, add_tools, call, request

HEAD = {"X-Made-Up": SOCKET.token}
MIB = 1024 * 1024


@pytest.fixture
async def bridge() -> AsyncIterator[Served]:
    async with served(endpoints=(HTTP, SOCKET)) as running:
        add_tools(running, SOCKET.name)
        yield running


class Socket:
    """An agent at a WebSocket."""

    def __init__(self, ws: aiohttp.ClientWebSocketResponse) -> None:
        self.ws = ws

    async def say(self, message: Any) -> None:
        await self.ws.send_str(json.dumps(message))

    async def hear(self) -> Any:
        message = await self.ws.receive(timeout=5)
        assert message.type is WSMsgType.TEXT, message
        return json.loads(message.data)

    async def ask(self, message: Any) -> Any:
        await self.say(message)
        return await self.hear()

    async def initialize(self) -> Any:
        answer = await self.ask(INITIALIZE)
        await self.say(INITIALIZED)
        return answer["result"]


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


@pytest.fixture
async def agent(bridge: Served, http: aiohttp.ClientSession) -> AsyncIterator[Socket]:
    async with http.ws_connect(bridge.url + "/", headers=HEAD, protocols=("mcp",), compress=15) as ws:
        yield Socket(ws)


async def test_a_proposal_that_is_no_unicode_is_answered(agent: Socket) -> None:
    """Its agent waits for that id alone, and would wait for good."""
    await agent.initialize()
    await agent.ws.send_str(json.dumps(call("place", 7)).replace('"place"', '"place\\ud800"'))
    answer = await agent.hear()
    assert (answer["id"], answer["error"]["code"]) == (7, -32700)


async def test_a_session_is_one_socket(bridge: Served, agent: Socket) -> None:
    """It has its own server and tools; a sub-protocol is agreed on, compression is not."""
    assert (agent.ws.protocol, agent.ws.compress) == ("mcp", 0)
    result = await agent.initialize()
    assert (result["serverInfo"]["name"], list(result["capabilities"])) == (SERVER.name, ["tools"])
    listed = await agent.ask(request("tools/list"))
    assert [tool["name"] for tool in listed["result"]["tools"]] == ["place"]
    assert (await agent.ask(call("echo", 3)))["error"]["code"] == -32602
    assert (await agent.ask(request("prompts/list", id_=4)))["error"]["code"] == -32601
    key = (await agent.ask(call("place", 5)))["result"]["content"][0]["text"]
    await agent.say({"jsonrpc": "2.0", "method": "ide_connected", "params": {"pid": 4}})
    bridge.editor.emit("push", "socket", key, "moved", '{"line":2}', True)
    assert await agent.hear() == {"jsonrpc": "2.0", "method": "moved", "params": {"line": 2}}
    await eventually(lambda: len(bridge.editor.agent_events) == 2)
    assert [event for event, _ in bridge.editor.agent_events] == ["opened", "notified"]
    await agent.ws.close()
    await eventually(lambda: bridge.editor.agent_events[-1] == ("left", {"agent": "socket", "session": key}))
    assert bridge.app.handlers.sessions.of_agent("socket") == []


async def test_no_subprotocol_is_echoed_that_was_not_offered(
    bridge: Served, http: aiohttp.ClientSession
) -> None:
    """Some agents close a socket that has one, others one that has none."""
    for offered in ((), ("other",)):
        async with http.ws_connect(bridge.url + "/mcp", headers=HEAD, protocols=offered) as ws:
            assert ws.protocol is None
            assert (await Socket(ws).initialize())["serverInfo"]["name"] == SERVER.name


async def test_a_call_that_waits_for_a_person_holds_nothing_up(bridge: Served, agent: Socket) -> None:
    """Others are answered meanwhile, and it ends with the socket at the latest."""
    opened, running = bridge.add_gate("diff")
    bridge.editor.offers.of["tools"]["diff"].agent = "socket"
    await agent.initialize()
    await agent.say(call("diff", 7))
    context = await running()
    assert (await agent.ask(call("place", 8)))["id"] == 8
    assert (await agent.ask(request("ping", id_=9)))["result"] == {}
    assert (await agent.ask(call("diff", 7)))["error"]["message"] == "Request id is in flight"
    opened.set()
    assert (await agent.hear())["id"] == 7
    opened.clear()
    await agent.say(call("diff", 10))
    second = await running()
    assert second.id != context.id
    await agent.ws.close()
    await eventually(lambda: second.id in [task for task, _ in bridge.editor.cancels])


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"X-Made-Up": SOCKET.token + "x"}, 401),
        ({"X-Made-Up": f"Bearer {SOCKET.token}"}, 401),
        ({"X-Made-Up": HTTP.token}, 401),
        ({"X-Made-Up": TOKEN}, 401),
        ({"Authorization": f"Bearer {SOCKET.token}"}, 401),
        ({"Authorization": f"Bearer {TOKEN}"}, 400),
        ({"Authorization": f"Bearer {HTTP.token}"}, 400),
        ({"Origin": "https://attacker.example"}, 403),
        (HEAD | {"Origin": "https://attacker.example"}, 403),
        (HEAD | {"Origin": "null"}, 403),
        (HEAD | {"Host": "attacker.example"}, 403),
        (HEAD | {"Sec-WebSocket-Version": "1"}, 400),
    ],
)
async def test_who_is_not_let_in(
    bridge: Served, http: aiohttp.ClientSession, headers: dict[str, str], status: int
) -> None:
    """No web page, wherever it comes from and whatever it holds; no other token than its own."""
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        await http.ws_connect(bridge.url + "/", headers=headers)
    assert refused.value.status == status
    assert len(bridge.app.handlers.sessions) == 0


async def test_a_web_page_of_our_own_port_is_none_of_ours(
    bridge: Served, http: aiohttp.ClientSession
) -> None:
    """What answers there was not made by us: the main token's guard lets it by, this one does not."""
    for head in (HEAD, {}):
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await http.ws_connect(bridge.url + "/", headers=head | {"Origin": bridge.url})
        assert refused.value.status in (401, 403)


async def test_without_an_upgrade_it_is_nothing(bridge: Served, http: aiohttp.ClientSession) -> None:
    """The token of a WebSocket opens no other transport."""
    async with http.get(bridge.url + "/mcp", headers=HEAD) as response:
        assert response.status == 426
    async with http.post(bridge.url + "/mcp", json=INITIALIZE, headers=HEAD) as response:
        assert response.status == 426


async def test_what_is_no_message_is_answered(agent: Socket) -> None:
    """Each text by itself; what is no text ends the socket."""
    await agent.ws.send_str("{")
    assert (await agent.hear())["error"]["code"] == -32700
    await agent.ws.send_str('{"jsonrpc":"2.0","id":1}')
    assert (await agent.hear())["error"]["code"] == -32600
    await agent.ws.send_str("[]")
    assert (await agent.hear())["error"]["code"] == -32600
    assert (await agent.initialize())["serverInfo"]["name"] == SERVER.name
    await agent.ws.send_bytes(b"{}")
    message = await agent.ws.receive(timeout=5)
    assert (message.type, message.data) == (WSMsgType.CLOSE, 1003)


async def test_a_flood_of_notifications_is_bounded(bridge: Served, agent: Socket) -> None:
    """They would keep the editor busy; what else the agent wants goes on."""
    await agent.initialize()
    for n in range(2000):
        await agent.say({"jsonrpc": "2.0", "method": "noise", "params": {"n": n}})
    assert "result" in await agent.ask(call("place", 9))
    received = [data for event, data in bridge.editor.agent_events if event == "notified"]
    assert 100 <= len(received) < 500
    assert json.loads(received[0]["params"]) == {"n": 0}


async def test_a_large_frame_is_refused_by_its_head(bridge: Served, agent: Socket) -> None:
    """100 MB that are announced are not read, nor is the message that many small frames make."""
    await agent.initialize()
    await eventually(lambda: bridge.editor.agent_events)
    writer = agent.ws._writer.transport
    assert writer is not None
    writer.write(struct.pack("!BBQI", 0x81, 0x80 | 127, 100 * MIB, 0) + b"x" * 100)
    message = await agent.ws.receive(timeout=5)
    assert (message.type, message.data) == (WSMsgType.CLOSE, 1009)
    await eventually(lambda: bridge.editor.agent_events[-1][0] == "left")


async def test_a_message_in_many_frames_is_bounded_as_one(agent: Socket) -> None:
    """By `limits.request_body`, as every message."""
    writer = agent.ws._writer.transport
    assert writer is not None
    first = 0x01
    for _ in range(9):  # half a MiB each, none of them the last
        writer.write(struct.pack("!BBQI", first, 0x80 | 127, MIB // 2, 0) + b"x" * (MIB // 2))
        first = 0x00
        await asyncio.sleep(0)
    message = await agent.ws.receive(timeout=5)
    assert (message.type, message.data) == (WSMsgType.CLOSE, 1009)


async def test_a_compressed_frame_is_refused(agent: Socket) -> None:
    """None was agreed on: a few bytes would become a large message."""
    writer = agent.ws._writer.transport
    assert writer is not None
    writer.write(struct.pack("!BBI", 0x81 | 0x40, 0x80 | 5, 0) + b"xxxxx")
    message = await agent.ws.receive(timeout=5)
    assert (message.type, message.data) == (WSMsgType.CLOSE, 1002)


async def test_no_room(http: aiohttp.ClientSession) -> None:
    """A socket more than there are sessions is refused before it is one."""
    settings = Settings(limits=Limits(sessions=1))
    async with served(settings, endpoints=(SOCKET,)) as bridge, http.ws_connect(bridge.url, headers=HEAD):
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await http.ws_connect(bridge.url, headers=HEAD)
        assert refused.value.status == 503


async def test_the_end_of_the_bridge_ends_the_socket(http: aiohttp.ClientSession) -> None:
    """At once, with a word."""
    async with served(endpoints=(SOCKET,)) as bridge:
        ws = await http.ws_connect(bridge.url + "/", headers=HEAD)
        await Socket(ws).initialize()
    message = await ws.receive(timeout=5)
    assert message.type in (WSMsgType.CLOSE, WSMsgType.CLOSED)
    await ws.close()


async def test_one_agent_takes_its_share_of_the_sessions_and_no_more(http: aiohttp.ClientSession) -> None:
    """Whoever comes again and again keeps nobody else out, and can come when one of its own has gone."""
    async with served(Settings(limits=Limits(sessions=8)), endpoints=(HTTP, SOCKET)) as running:
        sockets = [await http.ws_connect(running.url + "/", headers=HEAD) for _ in range(2)]
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await http.ws_connect(running.url + "/", headers=HEAD)
        assert refused.value.status == 503
        head = {"Authorization": f"Bearer {TOKEN}", "Accept": JSON_AND_SSE}
        async with http.post(running.url + "/mcp", json=INITIALIZE, headers=head) as response:
            assert response.status == 200
        await sockets[0].close()
        await eventually(lambda: len(running.app.handlers.sessions.of_agent(SOCKET.name)) == 1)
        async with http.ws_connect(running.url + "/", headers=HEAD) as ws:
            assert (await Socket(ws).initialize())["serverInfo"]["name"] == SERVER.name
        await sockets[1].close()
