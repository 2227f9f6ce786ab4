"""A client disconnects or cancels during a call: why and when the tool is cancelled."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import aiohttp
import pytest

from tests.support.bridge import Bridge
from tests.support.raw import STATELESS_META, STATELESS_VERSION, Raw, begun, cancel_of, text_of, within
from tests.support.shared import GRACE
from tests.support.sse import LegacyStream
from tests.support.tcp import request as raw_request

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def cancelled(bridge: Bridge, reason: str, seconds: float) -> None:
    """The tool `hold` is cancelled with `reason` within `seconds`."""
    await bridge.nvim.wait_for("return #Seen.cancelled > 0", timeout=int(seconds * 1000))
    assert await bridge.nvim.lua("return Seen.cancelled") == [reason]


async def disconnect_during(bridge: Bridge, request: Coroutine[Any, Any, Any]) -> None:
    """Sends a call of `hold`, and closes its connection once the tool runs."""
    call = asyncio.create_task(request)
    await begun(bridge)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


async def test_a_stateless_call_ends_with_its_connection(shared: Bridge, client: Raw) -> None:
    await disconnect_during(shared, client.stateless("hold"))
    await cancelled(shared, "disconnected", 1)


@pytest.mark.slow
async def test_a_session_call_continues_for_the_grace_period(shared: Bridge, client: Raw) -> None:
    gone = time.monotonic()
    await disconnect_during(shared, client.call("hold"))
    # Sessions are checked once a second.
    await cancelled(shared, "client_gone", GRACE / 1000 + 2.5)
    assert time.monotonic() - gone >= GRACE / 1000 * 0.9


@pytest.mark.slow
async def test_a_client_that_still_listens_on_its_stream_is_not_gone(shared: Bridge, client: Raw) -> None:
    async with client.http.get(f"{shared.url}/mcp", headers=client.headers()) as stream:
        assert stream.status == 200
        await disconnect_during(shared, client.call("hold"))
        await asyncio.sleep(GRACE / 1000 + 1.2)
        assert await shared.nvim.lua("return Seen.cancelled") == []
    await cancelled(shared, "client_gone", GRACE / 1000 + 2.5)


@pytest.mark.slow
async def test_each_request_of_a_session_renews_the_grace_period(shared: Bridge, client: Raw) -> None:
    await disconnect_during(shared, client.call("hold"))
    for _ in range(5):
        await asyncio.sleep(GRACE / 1000 / 2)
        assert (await client.send(client.message("ping")))[0] == 200
    assert await shared.nvim.lua("return Seen.cancelled") == []
    await cancelled(shared, "client_gone", GRACE / 1000 + 2.5)


async def test_deleting_a_session_cancels_and_answers_its_call(shared: Bridge, client: Raw) -> None:
    async with client.http.get(f"{shared.url}/mcp", headers=client.headers()) as stream:
        call = asyncio.create_task(client.send(client.call_message("hold")))
        await begun(shared)
        assert (await client.send(None, method="DELETE"))[0] == 200
        await cancelled(shared, "session_closed", 1)
        status, answer = await within(10, call)
        assert (status, answer["error"]["code"]) == (200, -32800)
        await within(10, stream.content.read())


async def test_a_cancelled_request_is_answered_and_a_second_ignored(shared: Bridge, client: Raw) -> None:
    message = client.call_message("hold")
    call = asyncio.create_task(client.send(message))
    await begun(shared)
    for _ in range(2):
        assert (await client.send(cancel_of(message["id"])))[0] == 202
    await cancelled(shared, "client", 1)
    status, answer = await within(10, call)
    assert (status, answer["id"], answer["error"]["code"]) == (200, message["id"], -32800)


async def test_a_cancel_that_arrives_before_its_request_cancels_it(shared: Bridge, client: Raw) -> None:
    message = client.call_message("hold")
    assert (await client.send(cancel_of(message["id"])))[0] == 202
    assert (await within(10, client.send(message)))[1]["error"]["code"] == -32800
    assert await shared.nvim.lua("return { Seen.running, #Seen.cancelled }") == [0, 0]


async def test_other_sessions_and_odd_ids_cancel_nothing(shared: Bridge, client: Raw) -> None:
    message = client.call_message("later", {"ms": 300, "value": "mine"}) | {"id": 1}
    call = asyncio.create_task(client.send(message))
    await shared.nvim.wait_for("return require('mcp-tools.registry').pending_count() == 1")
    async with Raw(shared) as other:
        await other.initialize()
        for id_ in (message["id"], str(message["id"]), None, [], {}, -1, 1.5, True):
            for params in ({"requestId": id_}, {}, None):
                assert (await other.send(cancel_of(None) | {"params": params}))[0] == 202
    for id_ in ("1", True, 1.5, None):
        assert (await client.send(cancel_of(id_)))[0] == 202
    assert text_of((await within(10, call))[1]["result"]) == "mine"


async def test_a_legacy_session_ends_with_its_stream(shared: Bridge, client: Raw) -> None:
    async with LegacyStream(shared) as stream:
        await stream.initialize()
        await stream.post(client.call_message("hold"))
        await begun(shared)
    await cancelled(shared, "disconnected", 2)
    status, _ = await client.send(client.message("ping"), path=stream.path, Mcp_Session_Id=None)
    assert status == 404


async def abort(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    transport = writer.transport
    assert isinstance(transport, asyncio.Transport)
    transport.abort()


async def half_close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Closes only the sending direction."""
    writer.write_eof()


@pytest.mark.parametrize("how", [abort, half_close])
async def test_a_reset_or_half_closed_connection_cancels_a_stateless_call(
    shared: Bridge, how: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
) -> None:
    params = {"name": "nvim_hold", "arguments": {}, "_meta": STATELESS_META}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    head = {"Mcp_Method": "tools/call", "Mcp_Name": "nvim_hold"}
    reader, writer = await asyncio.open_connection("127.0.0.1", shared.port)
    try:
        writer.write(raw_request(shared, body, MCP_Protocol_Version=STATELESS_VERSION, **head))
        await begun(shared)
        await how(reader, writer)
        await cancelled(shared, "disconnected", 1)
    finally:
        writer.close()


async def test_clients_that_disconnect_after_sending_leave_nothing(shared: Bridge, client: Raw) -> None:
    message = json.dumps(client.call_message("later", {"ms": 50, "value": 1})).encode()
    for _ in range(20):
        _, writer = await asyncio.open_connection("127.0.0.1", shared.port)
        writer.write(raw_request(shared, message, Mcp_Session_Id=client.session))
        writer.close()
    assert text_of(await client.call("echo", {"value": "served"})) == "served"


async def test_a_streaming_call_is_resumed_by_its_last_event_id(shared: Bridge, client: Raw) -> None:
    message = client.call_message("count", {"steps": 20}, progressToken="p")
    async with client.http.post(f"{shared.url}/mcp", json=message, headers=client.headers()) as first:
        last = await event_id(first)
    async with client.http.get(f"{shared.url}/mcp", headers=client.headers(Last_Event_ID=last)) as second:
        text = await within(10, second.text())
    events = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
    assert events[-1]["id"] == message["id"]
    assert text_of(events[-1]["result"]) == "counted"
    done = [event["params"]["progress"] for event in events[:-1]]
    assert done == sorted(set(done))


async def event_id(response: aiohttp.ClientResponse) -> str:
    """The id of the first event that carries a message."""
    id_ = ""
    async with asyncio.timeout(10):
        async for line in response.content:
            if line.startswith(b"id: "):
                id_ = line[4:].decode().strip()
            elif line.startswith(b"data: {"):
                return id_
    raise AssertionError("no event")
