"""An endpoint of an agent at the port, over a WebSocket."""

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
from tests.support.served import INITIALIZED, JSON_AND_SSE, TOKEN, Served, eventually, served

from .agents import HTTP, INITIALIZE, SERVER, SOCKET, add_tools, call, request

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

    async def send(self, message: Any) -> None:
        await self.ws.send_str(json.dumps(message))

    async def receive(self) -> Any:
        message = await self.ws.receive(timeout=5)
        assert message.type is WSMsgType.TEXT, message
        return json.loads(message.data)

    async def ask(self, message: Any) -> Any:
        await self.send(message)
        return await self.receive()

    async def closed(self) -> int:
        """The code with which the bridge closes the socket."""
        message = await self.ws.receive(timeout=5)
        assert message.type is WSMsgType.CLOSE
        return message.data

    def write(self, data: bytes) -> None:
        """Writes raw frames."""
        writer = self.ws._writer.transport
        writer.write(data)

    async def initialize(self) -> Any:
        answer = await self.ask(INITIALIZE)
        await self.send(INITIALIZED)
        return answer["result"]


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


async def refusal(http: aiohttp.ClientSession, bridge: Served, headers: dict[str, str]) -> int:
    """The status with which a socket is refused."""
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        await http.ws_connect(bridge.url + "/", headers=headers)
    return refused.value.status


@pytest.fixture
async def agent(bridge: Served, http: aiohttp.ClientSession) -> AsyncIterator[Socket]:
    async with http.ws_connect(bridge.url + "/", headers=HEAD, protocols=("mcp",), compress=15) as ws:
        yield Socket(ws)


async def test_a_message_with_a_lone_surrogate_is_answered(agent: Socket) -> None:
    await agent.initialize()
    await agent.ws.send_str(json.dumps(call("place", 7)).replace('"place"', '"place\\ud800"'))
    answer = await agent.receive()
    assert (answer["id"], answer["error"]["code"]) == (7, -32700)


async def test_a_socket_is_one_session_with_its_own_server_and_tools(bridge: Served, agent: Socket) -> None:
    """A sub-protocol is agreed on, compression is not."""
    assert (agent.ws.protocol, agent.ws.compress) == ("mcp", 0)
    result = await agent.initialize()
    assert (result["serverInfo"]["name"], list(result["capabilities"])) == (SERVER.name, ["tools"])
    listed = await agent.ask(request("tools/list"))
    assert [tool["name"] for tool in listed["result"]["tools"]] == ["place"]
    assert (await agent.ask(call("echo", 3)))["error"]["code"] == -32602
    assert (await agent.ask(request("prompts/list", id_=4)))["error"]["code"] == -32601
    key = (await agent.ask(call("place", 5)))["result"]["content"][0]["text"]
    await agent.send({"jsonrpc": "2.0", "method": "ide_connected", "params": {"pid": 4}})
    bridge.editor.emit("push", "socket", key, "moved", '{"line":2}', True)
    assert await agent.receive() == {"jsonrpc": "2.0", "method": "moved", "params": {"line": 2}}
    await eventually(lambda: len(bridge.editor.agent_events) == 2)
    assert [event for event, _ in bridge.editor.agent_events] == ["opened", "notified"]
    await agent.ws.close()
    await eventually(lambda: bridge.editor.agent_events[-1] == ("left", {"agent": "socket", "session": key}))
    assert bridge.app.handlers.sessions.of_agent("socket") == []


async def test_only_an_offered_subprotocol_is_selected(bridge: Served, http: aiohttp.ClientSession) -> None:
    for offered in ((), ("other",)):
        async with http.ws_connect(bridge.url + "/mcp", headers=HEAD, protocols=offered) as ws:
            assert ws.protocol is None
            assert (await Socket(ws).initialize())["serverInfo"]["name"] == SERVER.name


async def test_a_waiting_call_delays_no_other_and_ends_with_the_socket(bridge: Served, agent: Socket) -> None:
    opened, running = bridge.add_gate("diff")
    bridge.editor.offers.of["tools"]["diff"].agent = "socket"
    await agent.initialize()
    await agent.send(call("diff", 7))
    context = await running()
    assert (await agent.ask(call("place", 8)))["id"] == 8
    assert (await agent.ask(request("ping", id_=9)))["result"] == {}
    assert (await agent.ask(call("diff", 7)))["error"]["message"] == "Request id is in flight"
    opened.set()
    assert (await agent.receive())["id"] == 7
    opened.clear()
    await agent.send(call("diff", 10))
    second = await running()
    assert second.id != context.id
    await agent.ws.close()
    await eventually(lambda: second.id in [task for task, _ in bridge.editor.cancels])


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        *(({"X-Made-Up": wrong}, 401) for wrong in (SOCKET.token + "x", f"Bearer {SOCKET.token}")),
        *(({"X-Made-Up": wrong}, 401) for wrong in (HTTP.token, TOKEN)),
        ({"Authorization": f"Bearer {SOCKET.token}"}, 401),
        *(({"Authorization": f"Bearer {token}"}, 400) for token in (TOKEN, HTTP.token)),
        *((head | {"Origin": "https://attacker.example"}, 403) for head in ({}, HEAD)),
        *((HEAD | {"Origin": "null"}, 403), (HEAD | {"Host": "attacker.example"}, 403)),
        (HEAD | {"Sec-WebSocket-Version": "1"}, 400),
    ],
)
async def test_a_wrong_token_origin_host_or_version_is_refused(
    bridge: Served, http: aiohttp.ClientSession, headers: dict[str, str], status: int
) -> None:
    assert await refusal(http, bridge, headers) == status
    assert len(bridge.app.handlers.sessions) == 0


async def test_an_origin_of_the_own_port_is_refused(bridge: Served, http: aiohttp.ClientSession) -> None:
    for head in (HEAD, {}):
        assert await refusal(http, bridge, head | {"Origin": bridge.url}) in (401, 403)


async def test_a_request_without_an_upgrade_gets_426(bridge: Served, http: aiohttp.ClientSession) -> None:
    for method, body in (("GET", None), ("POST", INITIALIZE)):
        async with http.request(method, bridge.url + "/mcp", json=body, headers=HEAD) as response:
            assert response.status == 426


async def test_an_invalid_text_is_answered_and_binary_data_closes_the_socket(agent: Socket) -> None:
    for text, code in (("{", -32700), ('{"jsonrpc":"2.0","id":1}', -32600), ("[]", -32600)):
        await agent.ws.send_str(text)
        assert (await agent.receive())["error"]["code"] == code
    assert (await agent.initialize())["serverInfo"]["name"] == SERVER.name
    await agent.ws.send_bytes(b"{}")
    assert await agent.closed() == 1003


async def test_notifications_are_rate_limited(bridge: Served, agent: Socket) -> None:
    await agent.initialize()
    for n in range(2000):
        await agent.send({"jsonrpc": "2.0", "method": "noise", "params": {"n": n}})
    assert "result" in await agent.ask(call("place", 9))
    received = [data for event, data in bridge.editor.agent_events if event == "notified"]
    assert 100 <= len(received) < 500
    assert json.loads(received[0]["params"]) == {"n": 0}


async def test_a_large_frame_is_refused_by_its_header(bridge: Served, agent: Socket) -> None:
    await agent.initialize()
    await eventually(lambda: bridge.editor.agent_events)
    agent.write(struct.pack("!BBQI", 0x81, 0x80 | 127, 100 * MIB, 0) + b"x" * 100)
    assert await agent.closed() == 1009
    await eventually(lambda: bridge.editor.agent_events[-1][0] == "left")


async def test_a_message_in_many_frames_has_the_same_limit(agent: Socket) -> None:
    for opcode in [0x01] + [0x00] * 8:  # half a MiB each, without the flag of the last frame
        agent.write(struct.pack("!BBQI", opcode, 0x80 | 127, MIB // 2, 0) + b"x" * (MIB // 2))
        await asyncio.sleep(0)
    assert await agent.closed() == 1009


async def test_a_compressed_frame_is_refused(agent: Socket) -> None:
    agent.write(struct.pack("!BBI", 0x81 | 0x40, 0x80 | 5, 0) + b"xxxxx")
    assert await agent.closed() == 1002


async def test_a_socket_beyond_the_limit_of_sessions_gets_503(http: aiohttp.ClientSession) -> None:
    settings = Settings(limits=Limits(sessions=1))
    async with served(settings, endpoints=(SOCKET,)) as bridge, http.ws_connect(bridge.url, headers=HEAD):
        assert await refusal(http, bridge, HEAD) == 503


async def test_the_end_of_the_bridge_closes_the_socket(http: aiohttp.ClientSession) -> None:
    async with served(endpoints=(SOCKET,)) as bridge:
        ws = await http.ws_connect(bridge.url + "/", headers=HEAD)
        await Socket(ws).initialize()
    message = await ws.receive(timeout=5)
    assert message.type in (WSMsgType.CLOSE, WSMsgType.CLOSED)
    await ws.close()


async def test_an_agent_has_a_limited_share_of_the_sessions(http: aiohttp.ClientSession) -> None:
    async with served(Settings(limits=Limits(sessions=8)), endpoints=(HTTP, SOCKET)) as running:
        sockets = [await http.ws_connect(running.url + "/", headers=HEAD) for _ in range(2)]
        assert await refusal(http, running, HEAD) == 503
        head = {"Authorization": f"Bearer {TOKEN}", "Accept": JSON_AND_SSE}
        async with http.post(running.url + "/mcp", json=INITIALIZE, headers=head) as response:
            assert response.status == 200
        await sockets[0].close()
        await eventually(lambda: len(running.app.handlers.sessions.of_agent(SOCKET.name)) == 1)
        async with http.ws_connect(running.url + "/", headers=HEAD) as ws:
            assert (await Socket(ws).initialize())["serverInfo"]["name"] == SERVER.name
        await sockets[1].close()
