"""The stateless era: 2026-07-28."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from mcp_tools_nvim.mcp.subscriptions import MAX_LISTENED, MAX_OF_CLIENT
from mcp_tools_nvim.values import MAX_CLIENT_NAME
from tests.support.memory import ToolContext
from tests.support.served import STATELESS, TOKEN, Served, events, eventually, next_event, served

CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
LOG_LEVEL = "io.modelcontextprotocol/logLevel"


@pytest.fixture
async def bridge() -> AsyncIterator[Served]:
    async with served() as running:
        running.editor.add_tool("echo", lambda ctx, arguments: arguments.get("text", "nothing"))
        yield running


async def test_discover(bridge: Served) -> None:
    """The first thing that new clients send is answered at once, without a session."""
    async with await bridge.post_stateless("server/discover") as response:
        result = (await response.json())["result"]
        assert "Mcp-Session-Id" not in response.headers
    assert result["supportedVersions"] == [STATELESS]
    assert result["capabilities"] == {
        "tools": {"listChanged": True},
        "resources": {"listChanged": True, "subscribe": True},
        "prompts": {"listChanged": True},
        "completions": {},
        "logging": {},
        "extensions": {"io.modelcontextprotocol/tasks": {}, "io.modelcontextprotocol/skills": {}},
    }
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "mcp-tools.nvim"


async def test_tools(bridge: Served) -> None:
    """Lists and calls carry what the era wants: result type, time to live, scope."""
    async with await bridge.post_stateless("tools/list") as response:
        result = (await response.json())["result"]
    assert [tool["name"] for tool in result["tools"]] == ["nvim_echo"]
    assert (result["resultType"], result["ttlMs"], result["cacheScope"]) == ("complete", 0, "private")
    params = {"name": "nvim_echo", "arguments": {"text": "hi"}}
    async with await bridge.post_stateless("tools/call", params) as response:
        result = (await response.json())["result"]
    assert result["content"] == [{"type": "text", "text": "hi"}]
    assert result["resultType"] == "complete"
    async with await bridge.post_stateless("tools/list", {"cursor": "nonsense"}) as response:
        assert (response.status, (await response.json())["error"]["code"]) == (400, -32602)


@pytest.mark.parametrize("version", ["2099-01-01", "1", "", "DRAFT-2026"])
async def test_unknown_versions_are_refused_at_once(bridge: Served, version: str) -> None:
    """A version that nobody serves is a fast 400 that names the ones that are."""
    async with asyncio.timeout(2), await bridge.post_stateless("tools/list", version=version) as response:
        error = (await response.json())["error"]
    assert (response.status, error["code"]) == (400, -32022)
    assert error["data"]["supported"] == [STATELESS]


async def test_headers_must_fit_the_body(bridge: Served) -> None:
    """Missing, different and repeated routing headers are refused, and so is a missing envelope."""
    for headers in ({"Mcp_Method": "tools/call"}, {"Mcp_Method": ""}):
        async with await bridge.post_stateless("tools/list", **headers) as response:
            assert (response.status, (await response.json())["error"]["code"]) == (400, -32020)
    async with await bridge.post_stateless("tools/call", {"name": "nvim_echo"}, Mcp_Name="x") as response:
        assert (await response.json())["error"]["code"] == -32020
    async with await bridge.post(bridge.message("tools/list"), MCP_Protocol_Version=STATELESS) as response:
        assert (response.status, (await response.json())["error"]["code"]) == (400, -32602)
    async with await bridge.post_stateless("initialize") as response:
        assert response.status in (400, 404)
    async with await bridge.post_stateless("no/such") as response:
        assert (response.status, (await response.json())["error"]["code"]) == (404, -32601)


async def test_parameter_headers(bridge: Served) -> None:
    """Tools whose schema asks for parameter headers get them checked, also before anything was listed."""
    schema = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
    bridge.editor.add_tool("routed", lambda ctx, arguments: arguments["region"], inputSchema=schema)
    params = {"name": "nvim_routed", "arguments": {"region": "eu"}}
    for name in ("nvim_routed", "routed"):  # a tool answers to its bare name as well
        for headers, code in [
            ({}, -32020),
            ({"Mcp_Param_Region": "us"}, -32020),
            ({"Mcp_Param_Region": "eu"}, None),
        ]:
            given = params | {"name": name}
            async with await bridge.post_stateless("tools/call", given, **headers) as response:
                assert ((await response.json()).get("error") or {}).get("code") == code, name
    bridge.editor.remove("tools", "routed")
    bridge.editor.add_tool("routed", lambda ctx, arguments: arguments["region"])
    async with await bridge.post_stateless("tools/call", params) as response:
        assert "result" in await response.json(), "a changed schema counts from then on"


async def test_clients_that_share_a_connection(bridge: Served) -> None:
    """Each request is its own client's, whoever spoke on that connection before."""
    seen: list[tuple[str, str, Any]] = []

    async def note(ctx: ToolContext, arguments: dict[str, Any]) -> str:
        client = ctx.request.sender.client
        seen.append((client.name, client.version, ctx.request.sender.capabilities))
        return "noted"

    bridge.editor.add_tool("note", note)
    said: list[tuple[str, str, dict[str, Any]]] = [
        ("one", "1", {}),
        ("one", "1", {}),
        ("two", "1", {}),
        ("two", "2", {}),
        ("two", "2", {"sampling": {}}),
        ("huge" * 10_000, "2", {}),
        ("one", "1", {}),
    ]
    async with aiohttp.TCPConnector(limit=1) as connector:
        shared = aiohttp.ClientSession(connector=connector, headers={"Authorization": f"Bearer {TOKEN}"})
        usual, bridge.http = bridge.http, shared
        try:
            for name, version, capabilities in said:
                meta = {CLIENT_INFO: {"name": name, "version": version}, CAPABILITIES: capabilities}
                params = {"name": "nvim_note", "arguments": {}, "_meta": meta}
                async with await bridge.post_stateless("tools/call", params) as response:
                    assert response.status == 200
                    await response.read()
        finally:
            bridge.http = usual
            await shared.close()
    assert seen == [(name[:MAX_CLIENT_NAME], *rest) for name, *rest in said]


async def test_notifications_are_dropped(bridge: Served) -> None:
    """They get 202, in a version that is served."""
    note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    async with await bridge.post(note, MCP_Protocol_Version=STATELESS) as response:
        assert response.status == 202
    async with await bridge.post(note, MCP_Protocol_Version="2099-01-01") as response:
        assert response.status == 400
    async with await bridge.post(
        note | {"id": 1, "result": 1} | {}, MCP_Protocol_Version=STATELESS
    ) as response:
        assert response.status == 400


async def test_progress_and_logs_of_one_request(bridge: Served) -> None:
    """The answer becomes a stream; logs come only when the request asks for a level."""

    async def work(ctx: ToolContext, arguments: dict[str, Any]) -> str:
        ctx.log("info", "i")
        ctx.log("error", "e")
        if arguments.get("progress"):
            ctx.progress(1, 2)
        await asyncio.sleep(0)
        return "done"

    bridge.editor.add_tool("work", work)
    params: dict[str, Any] = {"name": "nvim_work"}
    async with await bridge.post_stateless("tools/call", params) as response:
        assert response.content_type == "application/json"
    params["_meta"] = {LOG_LEVEL: "error", "progressToken": 7}
    params["arguments"] = {"progress": True}
    async with await bridge.post_stateless("tools/call", params) as response:
        seen = [event async for event in events(response)]
    assert all(id_ is None for id_, _, _ in seen)
    messages = [data for _, _, data in seen]
    assert [m["params"]["data"] for m in messages if m.get("method") == "notifications/message"] == ["e"]
    assert [m["params"]["progress"] for m in messages if m.get("method") == "notifications/progress"] == [1]
    assert messages[-1]["result"]["content"][0]["text"] == "done"


async def test_a_half_closed_client_is_served(bridge: Served) -> None:
    """A client that shuts down its sending side still waits for its answer."""
    opened, running = bridge.add_gate()
    body = (
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nvim_wait","_meta":{'
        f'"io.modelcontextprotocol/protocolVersion":"{STATELESS}",'
        '"io.modelcontextprotocol/clientCapabilities":{}}}}'
    )
    token = bridge.parts.token
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nAccept: */*\r\n"
        f"MCP-Protocol-Version: {STATELESS}\r\nMcp-Method: tools/call\r\nMcp-Name: nvim_wait\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    reader, writer = await asyncio.open_connection("127.0.0.1", bridge.port)
    writer.write((head + body).encode())
    await running()
    opened.set()
    async with asyncio.timeout(2):
        assert b"200" in await reader.readline()
    writer.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
    writer.close()


async def test_subscriptions(bridge: Served) -> None:
    """`subscriptions/listen` acknowledges, announces changes, and ends with the client or the bridge."""
    params = {"notifications": {"toolsListChanged": True}}
    async with await bridge.post_stateless("subscriptions/listen", params) as response:
        stream = events(response)
        assert (await next_event(stream))[2]["method"] == "notifications/subscriptions/acknowledged"
        bridge.editor.add_tool("more", lambda ctx, arguments: None)
        assert (await next_event(stream))[2]["method"] == "notifications/tools/list_changed"
    second = await bridge.post_stateless("subscriptions/listen", params)
    stream = events(second)
    await next_event(stream)
    loop = asyncio.get_running_loop()
    begin = loop.time()
    await bridge.runner.cleanup()
    assert loop.time() - begin < 2
    assert "result" in (await next_event(stream))[2]


async def test_many_streams_of_one_client_watch_no_more_than_its_share(bridge: Served) -> None:
    """What the editor watches is for all; the streams of others get theirs, and room comes back."""
    bridge.editor.add_resource("test://{id}", lambda ctx, arguments: "x")
    watched = bridge.editor.offers.subscribed

    async def listen(number: int, client: str) -> tuple[aiohttp.ClientResponse, int]:
        uris = [f"test://{client}-{number}-{n}" for n in range(MAX_LISTENED)]
        params = {"notifications": {"resourceSubscriptions": uris}}
        params["_meta"] = {"io.modelcontextprotocol/clientInfo": {"name": client, "version": "1"}}
        response = await bridge.post_stateless("subscriptions/listen", params)
        told = (await next_event(events(response)))[2]["params"]["notifications"]
        return response, len(told.get("resourceSubscriptions") or ())

    streams = [await listen(number, "greedy") for number in range(6)]
    assert sum(count for _, count in streams) == MAX_OF_CLIENT == watched.total()
    other, count = await listen(0, "other")
    assert count == MAX_LISTENED
    for response in (other, *(response for response, _ in streams)):
        response.close()
    await eventually(lambda: watched.total() == 0)
    again, count = await listen(7, "greedy")
    assert count == MAX_LISTENED
    again.close()
