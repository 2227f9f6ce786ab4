"""HTTP with SSE, as of protocol 2024-11-05."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from mcp_tools_nvim.values import Limits, Settings
from tests.support import tcp
from tests.support.served import INITIALIZED, Served, events, next_event, served


class Client:
    def __init__(self, bridge: Served, response: aiohttp.ClientResponse) -> None:
        self.bridge = bridge
        self.response = response
        self.events = events(response)
        self.endpoint = ""

    async def open(self) -> None:
        _, name, self.endpoint = await next_event(self.events)
        assert name == "endpoint"
        await self.send(self.bridge.initialize_message("2024-11-05", client="s"))
        assert (await self.receive())["result"]["protocolVersion"] == "2024-11-05"
        await self.send(INITIALIZED)

    async def send(self, body: Any, status: int = 202) -> None:
        async with await self.bridge.post(body, path=self.endpoint, Accept="*/*") as response:
            assert response.status == status, await response.text()

    async def receive(self) -> Any:
        return (await next_event(self.events))[2]


async def connect(bridge: Served) -> Client:
    client = Client(bridge, await bridge.http.get(bridge.url + "/sse", headers={"Accept": "*/*"}))
    await client.open()
    return client


@pytest.fixture
async def bridge() -> AsyncIterator[Served]:
    async with served(Settings(limits=Limits(sessions=2))) as running:
        running.editor.add_tool("echo", lambda ctx, arguments: arguments.get("text", "nothing"))
        yield running


async def test_invalid_messages_and_repeated_ids_are_refused(bridge: Served) -> None:
    async with bridge.http.get(bridge.url + "/sse", headers={"Accept": "application/json"}) as response:
        assert response.status == 406
    client = await connect(bridge)
    assert bridge.reported[-1][-1].transport == "sse"
    assert (await bridge.answer({}, path=client.endpoint, Content_Type="text/plain"))[0] == 415
    await client.send(b"{", 400)
    await client.send({"jsonrpc": "2.0"}, 400)
    await client.send([bridge.call_message("echo")], 400)
    opened, running = bridge.add_gate()
    message = bridge.call_message("wait")
    await client.send(message)
    await running()
    await client.send(message, 400)
    opened.set()
    assert (await client.receive())["id"] == message["id"]
    session = client.endpoint.partition("=")[2]
    assert (await bridge.answer(bridge.call_message("echo"), session))[0] == 404, "not a session of /mcp"
    client.response.close()


async def test_a_message_is_processed_although_the_client_resets_the_connection(bridge: Served) -> None:
    client = await connect(bridge)
    for n in range(5):
        body = json.dumps(bridge.call_message("echo", {"text": str(n)})).encode()
        async with bridge.connection() as (reader, writer):
            writer.write(tcp.request(bridge, body, line=f"POST {client.endpoint} HTTP/1.1"))
            await reader.readexactly(12)
            linger = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            writer.transport.abort()
        assert (await client.receive())["result"]["content"][0]["text"] == str(n)
    client.response.close()
