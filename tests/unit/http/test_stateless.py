"""Stateless requests, as of protocol 2026-07-28."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import pytest

from mcp_tools_nvim.mcp.subscriptions import MAX_LISTENED, MAX_OF_CLIENT
from mcp_tools_nvim.values import MAX_CLIENT_NAME
from tests.support.memory import ToolContext, reporting
from tests.support.served import STATELESS, TOKEN, Served, events, eventually, next_event

CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
LOG_LEVEL = "io.modelcontextprotocol/logLevel"


async def test_discover_is_answered_without_a_session(bridge: Served) -> None:
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


async def test_lists_and_calls_have_a_result_type_and_a_lifetime(bridge: Served) -> None:
    result = (await bridge.answer_stateless("tools/list"))[1]["result"]
    assert [tool["name"] for tool in result["tools"]] == ["nvim_echo"]
    assert (result["resultType"], result["ttlMs"], result["cacheScope"]) == ("complete", 0, "private")
    params = {"name": "nvim_echo", "arguments": {"text": "hi"}}
    result = (await bridge.answer_stateless("tools/call", params))[1]["result"]
    assert result["content"] == [{"type": "text", "text": "hi"}]
    assert result["resultType"] == "complete"
    status, answer = await bridge.answer_stateless("tools/list", {"cursor": "nonsense"})
    assert (status, answer["error"]["code"]) == (400, -32602)


@pytest.mark.parametrize("version", ["2099-01-01", "1", "", "DRAFT-2026"])
async def test_an_unknown_version_is_refused_with_the_supported_ones(bridge: Served, version: str) -> None:
    status, answer = await bridge.answer_stateless("tools/list", version=version)
    assert (status, answer["error"]["code"]) == (400, -32022)
    assert answer["error"]["data"]["supported"] == [STATELESS]


async def test_headers_must_fit_the_body(bridge: Served) -> None:
    for status, code, request in (
        (400, -32020, bridge.answer_stateless("tools/list", Mcp_Method="tools/call")),
        (400, -32020, bridge.answer_stateless("tools/list", Mcp_Method="")),
        (400, -32020, bridge.answer_stateless("tools/call", {"name": "nvim_echo"}, Mcp_Name="x")),
        (400, -32602, bridge.answer(bridge.message("tools/list"), MCP_Protocol_Version=STATELESS)),
        (404, -32601, bridge.answer_stateless("initialize")),
        (404, -32601, bridge.answer_stateless("no/such")),
    ):
        got, answer = await request
        assert (got, answer["error"]["code"]) == (status, code)


async def test_parameter_headers_must_match_the_arguments(bridge: Served) -> None:
    """Also before the tools were listed."""
    schema = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
    bridge.editor.add_tool("routed", lambda ctx, arguments: arguments["region"], inputSchema=schema)
    params = {"name": "nvim_routed", "arguments": {"region": "eu"}}
    for name in ("nvim_routed", "routed"):  # a call may omit the prefix
        for region, code in ((None, -32020), ("us", -32020), ("eu", None)):
            headers = {"Mcp_Param_Region": region} if region else {}
            _, answer = await bridge.answer_stateless("tools/call", params | {"name": name}, **headers)
            assert answer.get("error", {}).get("code") == code, name
    bridge.editor.remove("tools", "routed")
    bridge.editor.add_tool("routed", lambda ctx, arguments: arguments["region"])
    assert "result" in (await bridge.answer_stateless("tools/call", params))[1], "the schema has changed"


async def test_each_request_on_a_shared_connection_has_its_own_client(bridge: Served) -> None:
    seen: list[tuple[str, str, Any]] = []

    def note(ctx: ToolContext, arguments: dict[str, Any]) -> str:
        sender = ctx.request.sender
        seen.append((sender.client.name, sender.client.version, sender.capabilities))
        return "noted"

    bridge.editor.add_tool("note", note)
    senders: list[tuple[str, str, dict[str, Any]]] = [
        *(("one", "1", {}), ("one", "1", {}), ("two", "1", {}), ("two", "2", {})),
        *(("two", "2", {"sampling": {}}), ("huge" * 10_000, "2", {}), ("one", "1", {})),
    ]
    head, connector = {"Authorization": f"Bearer {TOKEN}"}, aiohttp.TCPConnector(limit=1)
    async with aiohttp.ClientSession(connector=connector, headers=head) as shared:
        original, bridge.http = bridge.http, shared
        for name, version, capabilities in senders:
            meta = {CLIENT_INFO: {"name": name, "version": version}, CAPABILITIES: capabilities}
            params = {"name": "nvim_note", "arguments": {}, "_meta": meta}
            assert (await bridge.answer_stateless("tools/call", params))[0] == 200
        bridge.http = original
    assert seen == [(name[:MAX_CLIENT_NAME], *rest) for name, *rest in senders]


async def test_notifications_are_accepted_and_dropped(bridge: Served) -> None:
    note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    for body, version, status in (
        (note, STATELESS, 202),
        (note, "2099-01-01", 400),
        (note | {"id": 1, "result": 1}, STATELESS, 400),
    ):
        assert (await bridge.answer(body, MCP_Protocol_Version=version))[0] == status


async def test_an_answer_with_progress_or_requested_logs_is_a_stream(bridge: Served) -> None:
    bridge.editor.add_tool("work", reporting(("info", "i"), ("error", "e"), (1, 2)))
    params: dict[str, Any] = {"name": "nvim_work"}
    async with await bridge.post_stateless("tools/call", params) as response:
        assert response.content_type == "application/json"
    params["_meta"] = {LOG_LEVEL: "error", "progressToken": 7}
    async with await bridge.post_stateless("tools/call", params) as response:
        seen = [event async for event in events(response)]
    assert {id_ for id_, _, _ in seen} == {None}
    messages = [data for _, _, data in seen]
    assert [m["params"]["data"] for m in messages if m.get("method") == "notifications/message"] == ["e"]
    assert [m["params"]["progress"] for m in messages if m.get("method") == "notifications/progress"] == [1]
    assert messages[-1]["result"]["content"][0]["text"] == "done"


async def test_a_subscription_announces_changes_until_one_side_ends_it(bridge: Served) -> None:
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


async def test_all_streams_of_one_client_share_one_limit_of_watched_resources(bridge: Served) -> None:
    bridge.editor.add_resource("test://{id}", lambda ctx, arguments: "x")
    watched = bridge.editor.offers.subscribed

    async def listen(number: int, client: str) -> tuple[aiohttp.ClientResponse, int]:
        uris = [f"test://{client}-{number}-{n}" for n in range(MAX_LISTENED)]
        params = {"notifications": {"resourceSubscriptions": uris}}
        params["_meta"] = {"io.modelcontextprotocol/clientInfo": {"name": client, "version": "1"}}
        response = await bridge.post_stateless("subscriptions/listen", params)
        confirmed = (await next_event(events(response)))[2]["params"]["notifications"]
        return response, len(confirmed.get("resourceSubscriptions") or ())

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


async def test_a_request_of_the_relay_belongs_to_its_session(bridge: Served) -> None:
    """Its client need not name itself, and sends no arguments in headers; an unknown session is refused."""
    senders: list[Any] = []
    bridge.editor.add_tool("who", lambda context, arguments: senders.append(context.request.sender) or "")
    session = await bridge.initialize()
    call = {"name": "nvim_who", "arguments": {}, "_meta": {CLIENT_INFO: None}}
    for id_ in (session, None):
        headers = {} if id_ is None else {"Mcp_Tools_Session": id_}
        async with await bridge.post_stateless("tools/call", call, **headers) as response:
            assert response.status == 200, await response.text()
    assert [sender.session is not None for sender in senders] == [True, False]
    async with await bridge.post_stateless("tools/call", call, Mcp_Tools_Session="unknown") as response:
        assert (response.status, (await response.json())["error"]["code"]) == (410, -32600)
