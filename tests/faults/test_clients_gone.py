"""A client goes, or calls something off, while its call is under way: which tool hears what, and when."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable

import aiohttp
import pytest

from tests.support.bridge import Bridge
from tests.support.raw import STATELESS_VERSION, Raw, begun, text_of, within
from tests.support.shared import GRACE
from tests.support.sse import LegacyStream
from tests.support.tcp import request as raw_request

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def told(bridge: Bridge, reason: str, seconds: float) -> None:
    """The tool `hold` hears that it is cancelled, and why, within `seconds`."""
    await bridge.nvim.wait_for("return #Seen.cancelled > 0", timeout=int(seconds * 1000))
    assert await bridge.nvim.lua("return Seen.cancelled") == [reason]


async def drop(call: asyncio.Task[object]) -> None:
    """Closes the connection of a request by cancelling it."""
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


async def test_stateless_client_disconnects(shared: Bridge, client: Raw) -> None:
    """The connection is all that there is: the tool hears `disconnected` within a second."""
    call = asyncio.create_task(client.stateless("hold"))
    await begun(shared)
    await drop(call)

    await told(shared, "disconnected", 1)


@pytest.mark.slow
async def test_session_client_disconnects(shared: Bridge, client: Raw) -> None:
    """The call goes on until the client has been silent without a connection for the grace: `client_gone`."""
    call = asyncio.create_task(client.call("hold"))
    await begun(shared)
    gone = time.monotonic()
    await drop(call)

    # The sweep comes once a second, and the connection's end may fall just after one.
    await told(shared, "client_gone", GRACE / 1000 + 2.5)
    assert time.monotonic() - gone >= GRACE / 1000 * 0.9


@pytest.mark.slow
async def test_session_client_with_a_stream_disconnects(shared: Bridge, client: Raw) -> None:
    """A client that lost the connection of its call but listens on its stream is not gone."""
    async with client.http.get(f"{shared.url}/mcp", headers=client.headers()) as stream:
        assert stream.status == 200
        call = asyncio.create_task(client.call("hold"))
        await begun(shared)
        await drop(call)
        await asyncio.sleep(GRACE / 1000 + 1.2)
        assert await shared.nvim.lua("return Seen.cancelled") == []

    await told(shared, "client_gone", GRACE / 1000 + 2.5)


@pytest.mark.slow
async def test_session_client_that_returns_in_time(shared: Bridge, client: Raw) -> None:
    """Each request of the session begins its time anew."""
    call = asyncio.create_task(client.call("hold"))
    await begun(shared)
    await drop(call)
    for _ in range(5):
        await asyncio.sleep(GRACE / 1000 / 2)
        assert (await client.send(client.message("ping")))[0] == 200

    assert await shared.nvim.lua("return Seen.cancelled") == []
    await told(shared, "client_gone", GRACE / 1000 + 2.5)


async def test_session_is_deleted(shared: Bridge, client: Raw) -> None:
    """Its call is cancelled with `session_closed` and answered; its stream ends."""
    async with client.http.get(f"{shared.url}/mcp", headers=client.headers()) as stream:
        call = asyncio.create_task(client.send(client.call_message("hold")))
        await begun(shared)
        assert (await client.send(None, method="DELETE"))[0] == 200

        await told(shared, "session_closed", 1)
        status, answer = await within(1, call)
        assert (status, answer["error"]["code"]) == (200, -32800)
        await within(1, stream.content.read())


async def test_client_cancels(shared: Bridge, client: Raw) -> None:
    """`notifications/cancelled`: the tool hears `client`, the request is −32800, a second one is ignored."""
    message = client.call_message("hold")
    call = asyncio.create_task(client.send(message))
    await begun(shared)
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": message["id"]}}
    for _ in range(2):
        assert (await client.send(cancel))[0] == 202

    await told(shared, "client", 1)
    status, answer = await within(1, call)
    assert (status, answer["id"], answer["error"]["code"]) == (200, message["id"], -32800)


async def test_cancels_of_others_and_of_nothing(shared: Bridge, client: Raw) -> None:
    """Another session cannot cancel the call, and odd request ids cancel nothing."""
    message = client.call_message("later", {"ms": 300, "value": "mine"}) | {"id": 1}
    call = asyncio.create_task(client.send(message))
    await shared.nvim.wait_for("return require('mcp-tools.registry').pending_count() == 1")
    async with Raw(shared) as other:
        await other.initialize()
        for id_ in (message["id"], str(message["id"]), None, [], {}, -1, 1.5, True):
            for params in ({"requestId": id_}, {}, None):
                body = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
                assert (await other.send(body))[0] == 202
    for id_ in ("1", True, 1.5, None):
        body = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id_}}
        assert (await client.send(body))[0] == 202

    assert text_of((await within(2, call))[1]["result"]) == "mine"


async def test_sse_client_goes(shared: Bridge, client: Raw) -> None:
    """The session ends with its stream: the tool hears `disconnected`, later messages are 404."""
    async with LegacyStream(shared) as stream:
        await stream.initialize()
        await stream.post(client.call_message("hold"))
        await begun(shared)

    await told(shared, "disconnected", 2)
    status, _ = await client.send(client.message("ping"), path=stream.path, Mcp_Session_Id=None)
    assert status == 404


async def abort(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    transport = writer.transport
    assert isinstance(transport, asyncio.Transport)
    transport.abort()


async def half_close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Says that nothing more will come."""
    writer.write_eof()


@pytest.mark.parametrize("how", [abort, half_close])
async def test_connections_that_end_oddly(
    shared: Bridge, how: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
) -> None:
    """A reset, or only one half of the connection closed: the stateless call is cancelled in time."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": STATELESS_VERSION,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    body = json.dumps(call | {"params": {"name": "nvim_hold", "arguments": {}, "_meta": meta}}).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", shared.port)
    try:
        writer.write(
            raw_request(
                shared,
                body,
                MCP_Protocol_Version=STATELESS_VERSION,
                Mcp_Method="tools/call",
                Mcp_Name="nvim_hold",
            )
        )
        await begun(shared)
        await how(reader, writer)

        await told(shared, "disconnected", 1)
    finally:
        writer.close()


async def test_gone_before_its_call_begins(shared: Bridge, client: Raw) -> None:
    """Twenty clients that go at once after sending: nothing of theirs stays, and others are served."""
    message = json.dumps(client.call_message("later", {"ms": 50, "value": 1})).encode()
    for _ in range(20):
        _, writer = await asyncio.open_connection("127.0.0.1", shared.port)
        writer.write(raw_request(shared, message, Mcp_Session_Id=client.session))
        writer.close()

    assert text_of(await client.call("echo", {"value": "served"})) == "served"


async def test_a_call_outlives_the_loss_and_its_result_is_fetched(shared: Bridge, client: Raw) -> None:
    """A streaming call whose connection breaks is resumed by its last event id, with its result."""
    message = client.call_message("count", {"steps": 20}, progressToken="p")
    async with client.http.post(f"{shared.url}/mcp", json=message, headers=client.headers()) as first:
        last = await event_id(first)
    async with client.http.get(f"{shared.url}/mcp", headers=client.headers(Last_Event_ID=last)) as second:
        text = await within(3, second.text())

    events = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
    assert events[-1]["id"] == message["id"]
    assert text_of(events[-1]["result"]) == "counted"
    done = [event["params"]["progress"] for event in events[:-1]]
    assert done == sorted(set(done))


async def event_id(response: aiohttp.ClientResponse) -> str:
    """The id of the first event that carries a message."""
    id_ = ""
    async with asyncio.timeout(3):
        async for line in response.content:
            if line.startswith(b"id: "):
                id_ = line[4:].decode().strip()
            elif line.startswith(b"data: {"):
                return id_
    raise AssertionError("no event")
