"""Too many sessions, calls in flight and list changes: resources are bounded, and every answer is valid."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import aiohttp
import pytest

from tests.support.bridge import Bridge
from tests.support.raw import Raw, code_of, initialize_params, text_of, within
from tests.support.shared import forgotten, health, memory_of
from tests.support.sse import LegacyStream

pytestmark = pytest.mark.asyncio(loop_scope="session")

CALLS = 1024
SESSIONS = 64


async def open_sessions(raw: Raw, count: int) -> None:
    """Opens `count` sessions, sixteen at once; all get different ids."""
    ids: set[str] = set()
    body = json.dumps(raw.message("initialize", initialize_params())).encode()
    headers = raw.headers(Mcp_Session_Id=None)

    async def some() -> None:
        while len(ids) < count:
            async with raw.http.post(f"{raw.bridge.url}/mcp", data=body, headers=headers) as response:
                assert response.status == 200
                await response.read()
                ids.add(response.headers["Mcp-Session-Id"])

    await asyncio.gather(*(some() for _ in range(16)))
    assert len(ids) >= count


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_ten_thousand_sessions_need_bounded_memory(shared: Bridge, client: Raw) -> None:
    pid = await shared.pid()
    await open_sessions(client, 1_000)
    before = memory_of(pid)
    await open_sessions(client, 6_000)
    first = await client.initialize()
    await open_sessions(client, 3_000)
    assert (await asyncio.to_thread(health, shared))["sessions"]["count"] == SESSIONS
    assert memory_of(pid) - before < 8_000
    client.session = first
    assert text_of(await client.call("echo", {"value": "revived"})) == "revived"
    assert (await asyncio.to_thread(health, shared))["sessions"]["count"] == SESSIONS


async def test_a_connected_client_keeps_its_session_when_all_are_taken(shared: Bridge) -> None:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
        streams = []
        for _ in range(SESSIONS):
            async with asyncio.timeout(10):
                headers = shared.headers | {"Accept": "text/event-stream"}
                streams.append(await http.get(f"{shared.url}/sse", headers=headers))
                assert streams[-1].status == 200
        async with Raw(shared) as late:
            message = late.message("initialize", initialize_params())
            async with late.http.post(f"{shared.url}/mcp", json=message, headers=late.headers()) as refused:
                assert refused.status == 503
                assert int(refused.headers["Retry-After"]) > 0
                assert "limits.sessions" in (await refused.json())["error"]["message"]
            streams.pop().close()
            end = time.monotonic() + 3
            while (await late.send(message))[0] != 200:
                assert time.monotonic() < end
                await asyncio.sleep(0.05)
        for stream in streams:
            stream.close()


@pytest.mark.slow
async def test_calls_beyond_the_limit_are_busy(shared: Bridge, client: Raw) -> None:
    async with LegacyStream(shared) as stream:
        await stream.initialize()
        for start in range(0, CALLS, 64):
            posts = (stream.post(client.call_message("hold")) for _ in range(64))
            assert set(await asyncio.gather(*posts)) == {202}, start
        await shared.nvim.wait_for(f"return Seen.running == {CALLS}", timeout=8_000)
        assert (await asyncio.to_thread(health, shared))["calls"]["in_flight"] == CALLS
        for answer in (await client.call("mark"), await client.stateless("mark")):
            assert code_of(answer) == "busy"
        await stream.post(client.call_message("mark") | {"id": "one more"})
        late = await stream.next()
        assert (late["id"], code_of(late["result"])) == ("one more", "busy")
        # Other requests still work.
        assert (await client.send(client.message("tools/list", {})))[0] == 200
        assert await shared.nvim.lua("return Seen.late") == 0
    await shared.nvim.wait_for(f"return #Seen.cancelled == {CALLS}", timeout=8_000)
    assert await shared.nvim.lua("return Seen.running") == 0
    await forgotten(shared)
    assert text_of(await client.call("mark")) == "ran"


@pytest.mark.slow
async def test_each_of_a_thousand_calls_gets_its_own_result(shared: Bridge, client: Raw) -> None:
    await client.initialize("2025-03-26")
    calls = [client.call_message("later", {"ms": 200 + n % 100, "value": n}) for n in range(1000)]
    batches = [calls[n : n + 250] for n in range(0, 1000, 250)]
    sent = await within(15, asyncio.gather(*(client.send(batch) for batch in batches)))
    assert {status for status, _ in sent} == {200}
    wanted = {message["id"]: message["params"]["arguments"]["value"] for message in calls}
    found = [answer for _, answers in sent for answer in answers]
    assert {answer["id"]: json.loads(text_of(answer["result"])) for answer in found} == wanted


CHURN = """
local n = 0
_G.churn = vim.uv.new_timer()
churn:start(0, 10, vim.schedule_wrap(function()
  n = n + 1
  if n % 2 == 1 then
    mcp_tools.register({ name = 'flicker', description = 'number ' .. n, annotations = { read_only = true },
      execute = function(ctx) ctx('lit') end })
  else
    mcp_tools.unregister('flicker')
  end
end))
"""


@pytest.mark.slow
async def test_lists_are_valid_and_announcements_few_while_tools_change(shared: Bridge, client: Raw) -> None:
    stream = await client.http.get(f"{shared.url}/mcp", headers=client.headers())
    always = {tool["name"] for tool in await names(client)}
    await shared.nvim.lua(CHURN)
    end = time.monotonic() + 3
    seen = {"lists": 0, "lit": 0, "unknown": 0}

    async def use() -> None:
        async with Raw(shared) as raw:
            await raw.initialize()
            while time.monotonic() < end:
                tools = await names(raw)
                listed = [tool["name"] for tool in tools]
                assert listed == sorted(listed)
                assert set(listed) - {"nvim_flicker"} == always
                seen["lists"] += 1
                status, answer = await raw.send(raw.call_message("flicker"))
                assert status == 200
                if "result" in answer:
                    assert text_of(answer["result"]) == "lit"
                    seen["lit"] += 1
                else:
                    assert answer["error"]["code"] == -32602
                    seen["unknown"] += 1
                assert text_of(await raw.call("echo", {"value": "x"})) == "x"

    try:
        await asyncio.gather(*(use() for _ in range(4)))
    finally:
        await shared.nvim.lua("churn:close() mcp_tools.unregister('flicker')")
    assert min(seen.values()) > 10, seen
    announced = await announcements(stream)
    # At most one in 50 ms, of some 300 changes.
    assert 1 <= announced <= 3 / 0.05 + 2
    stream.close()


async def names(raw: Raw) -> list[dict[str, Any]]:
    status, answer = await raw.send(raw.message("tools/list", {}))
    assert status == 200
    tools: list[dict[str, Any]] = answer["result"]["tools"]
    assert all(tool["inputSchema"]["type"] == "object" for tool in tools)
    return tools


async def announcements(stream: aiohttp.ClientResponse) -> int:
    """The number of `list_changed` notifications in a stream."""
    data = b""
    try:
        async with asyncio.timeout(0.5):
            async for line in stream.content:
                data += line
    except TimeoutError:
        pass
    return data.count(b"notifications/tools/list_changed")
