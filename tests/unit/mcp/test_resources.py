"""Resources with an editor in memory: reads, errors, limits, subscriptions."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from mcp_tools_nvim.errors import Code
from mcp_tools_nvim.mcp.subscriptions import session_share
from mcp_tools_nvim.rate_limit import TokenBucket
from mcp_tools_nvim.values import Limits, Settings
from tests.support.memory import FailError, ToolContext
from tests.support.nvim import ROOT
from tests.support.served import Served, events, eventually, next_event, served

FAILURES = {"large": Code.TOO_LARGE, "slow": Code.TIMEOUT, "broken": Code.EXECUTION_ERROR}


def text(ctx: ToolContext, params: dict[str, Any]) -> str:
    return f"text {params}"


def fails(code: Code) -> Any:
    def read(ctx: ToolContext, params: dict[str, Any]) -> None:
        raise FailError("the true cause", code)

    return read


def prepare(bridge: Served) -> None:
    bridge.editor.add_resource("test://a", text, mimeType="text/markdown")
    bridge.editor.add_resource("test://b", lambda ctx, params: b"\0\xff")
    bridge.editor.add_resource("test://t/{+path}", text)
    for name, code in FAILURES.items():
        bridge.editor.add_resource(f"test://{name}", fails(code))


@pytest.fixture
async def bridge() -> AsyncIterator[Served]:
    async with served() as made:
        prepare(made)
        yield made


async def read(bridge: Served, session: str | None, uri: str) -> tuple[int, dict[str, Any]]:
    """HTTP status and answer of a read; without a session in the stateless era."""
    if session is None:
        return await bridge.answer_stateless("resources/read", {"uri": uri}, Mcp_Name=uri)
    return await bridge.answer(bridge.message("resources/read", {"uri": uri}), session)


async def session_of(bridge: Served, era: str) -> str | None:
    return await bridge.initialize() if era == "sessions" else None


def counted(bridge: Served) -> int:
    """Number of subscriptions in the editor."""
    return sum(bridge.editor.offers.subscribed.values())


async def subscribe(bridge: Served, session: str, uri: str) -> dict[str, Any]:
    return await bridge.ask(session, "resources/subscribe", {"uri": uri})


@pytest.mark.parametrize("era", ["sessions", "stateless"])
async def test_other_failures_have_their_own_code(bridge: Served, era: str) -> None:
    session = await session_of(bridge, era)
    for name, code in (("large", -32005), ("slow", -32603), ("broken", -32603)):
        _, answer = await read(bridge, session, f"test://{name}")
        assert (answer["error"]["code"], answer["error"]["data"]["code"]) == (code, str(FAILURES[name]))
    bridge.editor.close()
    _, answer = await read(bridge, session, "test://a")
    assert (answer["error"]["code"], answer["error"]["data"]["code"]) == (-32603, "editor_gone")


async def test_a_malformed_request_is_refused_with_the_name_of_the_field(bridge: Served) -> None:
    session = await bridge.initialize()
    for method in ("resources/read", "resources/subscribe", "resources/unsubscribe"):
        for params, wrong in (({}, "Field required"), ({"uri": 5}, "Input should be a valid string")):
            error = (await bridge.ask(session, method, params))["error"]
            assert error == {
                "code": -32602,
                "message": f"Invalid request parameters: uri: {wrong}",
                "data": {"errors": [{"field": "uri", "message": wrong}]},
            }
    status, answer = await bridge.answer_stateless("resources/list", {"cursor": 5})
    assert (status, answer["error"]["data"]["errors"][0]["field"]) == (400, "cursor")
    assert (await bridge.ask(session, "resources/list", {"cursor": "x"}))["error"]["code"] == -32602


async def test_reported_field_names_are_short_and_values_are_not_repeated(bridge: Served) -> None:
    session = await bridge.initialize()
    for key in ("é", "a" * 100_000, "\u202e\0"):
        params = {"name": "x", "arguments": {key: 5, "other": 1}}
        _, answer = await bridge.answer(bridge.message("prompts/get", params), session)
        error = answer["error"]
        assert error["code"] == -32602
        assert len(error["message"]) < 1000
        assert error["data"]["errors"][0]["field"].startswith("arguments.")
    many = {str(number): number for number in range(1000)}
    answer = await bridge.ask(session, "prompts/get", {"name": "x", "arguments": many})
    assert len(answer["error"]["data"]["errors"]) == 5


def test_a_token_bucket_is_refilled_up_to_its_size() -> None:
    bucket = TokenBucket(10, 2, 0.0)
    assert [bucket.take(0.0) for _ in range(3)] == [0, 0, 100]
    assert bucket.take(0.05) == 50
    assert bucket.take(0.1) == 0
    assert [bucket.take(9.0) for _ in range(3)] == [0, 0, 100]


async def test_each_client_has_its_own_rate_limit_of_reads() -> None:
    async with served(Settings(limits=Limits(resource_rate=1, resource_burst=2))) as bridge:
        prepare(bridge)
        first, second = await bridge.initialize(), await bridge.initialize()
        for session in (first, second, None):
            for _ in range(2):
                assert "result" in (await read(bridge, session, "test://a"))[1]
            _, answer = await read(bridge, session, "test://a")
            assert answer["error"]["code"] == -32004
            assert 0 < answer["error"]["data"]["retryAfterMs"] <= 1000
        # Tool calls and other connections have no such limit.
        bridge.editor.add_tool("echo", lambda ctx, arguments: "fine")
        assert (await bridge.call(first, "echo"))["content"][0]["text"] == "fine"
        async with aiohttp.ClientSession(headers=bridge.http.headers) as other:
            bridge.http, kept = other, bridge.http
            assert "result" in (await read(bridge, None, "test://a"))[1]
            bridge.http = kept


async def test_updates_reach_subscribers_once_until_they_unsubscribe(bridge: Served) -> None:
    one, other = await bridge.initialize(), await bridge.initialize()
    for _ in range(2):
        assert (await subscribe(bridge, one, "test://a"))["result"] == {}
    await subscribe(bridge, other, "test://t/x")
    assert counted(bridge) == 2
    async with bridge.listening(one) as stream, bridge.listening(other) as its_stream:
        bridge.editor.update("test://a")
        expected = {"method": "notifications/resources/updated", "params": {"uri": "test://a"}}
        assert (await next_event(stream))[2] == {"jsonrpc": "2.0"} | expected
        bridge.editor.update("test://t/x")
        assert (await next_event(its_stream))[2]["params"] == {"uri": "test://t/x"}
        for _ in range(2):
            assert (await bridge.ask(one, "resources/unsubscribe", {"uri": "test://a"}))["result"] == {}
        await eventually(lambda: counted(bridge) == 1)
        await subscribe(bridge, one, "test://b")
        bridge.editor.update("test://a")
        bridge.editor.update("test://b")
        assert (await next_event(stream))[2]["params"] == {"uri": "test://b"}


async def test_an_unread_update_is_queued_once(bridge: Served) -> None:
    session = await bridge.initialize()
    for uri in ("test://a", "test://b"):
        await subscribe(bridge, session, uri)
        for _ in range(500):
            bridge.editor.update(uri)
    async with bridge.listening(session) as stream:
        uris = [(await next_event(stream))[2]["params"]["uri"] for _ in range(2)]
    assert uris == ["test://a", "test://b"]


async def test_subscriptions_end_with_their_session(bridge: Served) -> None:
    session, deleted = await bridge.initialize(), await bridge.initialize()
    for each in (session, deleted):
        await subscribe(bridge, each, "test://a")
    assert await bridge.delete(deleted) == 200
    await eventually(lambda: counted(bridge) == 1)

    sessions = bridge.app.handlers.sessions
    sessions.drop(sessions._by_id[session])
    await eventually(lambda: counted(bridge) == 0)
    assert "result" in await bridge.ask(session, "resources/list")
    assert counted(bridge) == 0


@pytest.mark.slow
async def test_a_session_has_a_limited_number_of_subscriptions(bridge: Served) -> None:
    one, other = await bridge.initialize(), await bridge.initialize()
    room, most = asyncio.Semaphore(50), session_share(Limits().sessions)

    async def watch(session: str, number: int) -> Any:
        async with room:
            return await subscribe(bridge, session, f"test://t/{number}")

    answers = await asyncio.gather(*(watch(one, number) for number in range(most + 20)))
    refused = [answer["error"] for answer in answers if "error" in answer]
    assert len(refused) == 20
    assert {error["data"]["code"] for error in refused} == {"busy"}
    assert "unsubscribe from some first" in refused[0]["message"]
    assert counted(bridge) == most
    assert "result" in await watch(other, 1)
    await bridge.ask(one, "resources/unsubscribe", {"uri": "test://t/1"})
    assert "result" in await watch(one, most + 30)


def test_the_subscriptions_of_all_sessions_fit_in_the_limit_of_the_editor() -> None:
    text = (ROOT / "lua" / "mcp-tools" / "rpc" / "subscriptions.lua").read_text()
    found = re.search(r"^M\.MAX_URIS = (\d+)$", text, re.MULTILINE)
    assert found is not None
    for sessions in (1, 3, Limits().sessions, 1000):
        assert 0 < session_share(sessions) * sessions <= int(found[1])


@pytest.mark.slow
async def test_an_unknown_resource_and_a_silent_editor_refuse_subscriptions(bridge: Served) -> None:
    session = await bridge.initialize()
    expected = {"code": -32002, "message": "Resource not found", "data": {"uri": "test://none"}}
    assert (await subscribe(bridge, session, "test://none"))["error"] == expected
    bridge.editor.silent = True
    assert (await subscribe(bridge, session, "test://a"))["error"]["data"]["code"] == "editor_blocked"
    bridge.editor.recover()
    assert "result" in await bridge.ask(session, "resources/list")
    assert counted(bridge) == 0, "the late subscription is removed"


async def test_a_stateless_subscription_ends_with_its_stream(bridge: Served) -> None:
    uris = ["test://a", "test://none", "test://b", "test://a"]
    params = {"notifications": {"resourceSubscriptions": uris, "promptsListChanged": True}}
    async with await bridge.post_stateless("subscriptions/listen", params) as response:
        stream = events(response)
        confirmed = (await next_event(stream))[2]["params"]["notifications"]
        assert confirmed == {"resourceSubscriptions": ["test://a", "test://b"], "promptsListChanged": True}
        assert counted(bridge) == 2
        bridge.editor.update("test://b")
        assert (await next_event(stream))[2]["params"]["uri"] == "test://b"
        bridge.editor.add_prompt("p")
        assert (await next_event(stream))[2]["method"] == "notifications/prompts/list_changed"
    await eventually(lambda: counted(bridge) == 0)


async def test_invalid_utf_8_in_a_resource_is_an_error(bridge: Served) -> None:
    bridge.editor.add_resource("test://odd", lambda ctx, params: "a\udcffb")
    _, answer = await read(bridge, await bridge.initialize(), "test://odd")
    assert answer["error"]["data"]["code"] == "not_serializable"


async def test_a_read_can_be_cancelled(bridge: Served) -> None:
    _, running = bridge.add_gate()
    bridge.editor.add_resource("test://wait", bridge.editor.offers.of["tools"]["wait"].function)
    session, message = await bridge.initialize(), bridge.message("resources/read", {"uri": "test://wait"})
    asking = asyncio.create_task(bridge.answer(message, session))
    context = await running()
    note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": message["id"]}}
    await bridge.answer(note, session)
    assert (await asking)[1]["error"]["code"] == -32800
    await eventually(lambda: context.cancel_reason == "client")
