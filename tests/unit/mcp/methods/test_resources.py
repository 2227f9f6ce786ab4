"""Resources on the editor's twin: reads, misses, limits, and who hears of which change."""

from __future__ import annotations

import asyncio
import base64
import json
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

FAILURES = {
    "denied": Code.ACCESS_DENIED,
    "missing": Code.NOT_FOUND,
    "large": Code.TOO_LARGE,
    "slow": Code.TIMEOUT,
    "broken": Code.EXECUTION_ERROR,
}


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
        response = await bridge.post_stateless("resources/read", {"uri": uri}, Mcp_Name=uri)
    else:
        response = await bridge.post(bridge.message("resources/read", {"uri": uri}), session)
    async with response:
        return response.status, await response.json()


async def session_of(bridge: Served, era: str) -> str | None:
    return await bridge.initialize() if era == "sessions" else None


def counted(bridge: Served) -> int:
    """Subscriptions that the editor knows of."""
    return sum(bridge.editor.offers.subscribed.values())


@pytest.mark.parametrize("era", ["sessions", "stateless"])
async def test_reads(bridge: Served, era: str) -> None:
    """Text, bytes, and a template's variables."""
    session = await session_of(bridge, era)
    _, answer = await read(bridge, session, "test://a")
    contents = [{"uri": "test://a", "mimeType": "text/markdown", "text": "text {}"}]
    assert answer["result"]["contents"] == contents
    assert answer["result"].get("ttlMs") == (0 if session is None else None)
    _, answer = await read(bridge, session, "test://b")
    assert base64.b64decode(answer["result"]["contents"][0]["blob"]) == b"\0\xff"
    _, answer = await read(bridge, session, "test://t/x/y.lua")
    assert answer["result"]["contents"][0]["text"] == "text {'path': 'x/y.lua'}"


@pytest.mark.parametrize(("era", "code", "status"), [("sessions", -32002, 200), ("stateless", -32602, 400)])
async def test_all_misses_look_the_same(bridge: Served, era: str, code: int, status: int) -> None:
    """Unknown, forbidden and unreadable differ in nothing but the URI and the request's id."""
    session = await session_of(bridge, era)
    for uri in ("test://none", "test://denied", "test://missing", "file:///etc/passwd", "no uri", ""):
        got, answer = await read(bridge, session, uri)
        assert got == status
        assert answer["error"] == {"code": code, "message": "Resource not found", "data": {"uri": uri}}


@pytest.mark.parametrize("era", ["sessions", "stateless"])
async def test_other_failures(bridge: Served, era: str) -> None:
    """Too large has a code of its own, the others say theirs in `data`."""
    session = await session_of(bridge, era)
    for name, code in (("large", -32005), ("slow", -32603), ("broken", -32603)):
        _, answer = await read(bridge, session, f"test://{name}")
        assert (answer["error"]["code"], answer["error"]["data"]["code"]) == (code, str(FAILURES[name]))
    bridge.editor.close()
    _, answer = await read(bridge, session, "test://a")
    assert (answer["error"]["code"], answer["error"]["data"]["code"]) == (-32603, "editor_gone")


async def test_malformed(bridge: Served) -> None:
    """A request without a URI is refused before anything is asked, with the name of the field."""
    session = await bridge.initialize()
    for method in ("resources/read", "resources/subscribe", "resources/unsubscribe"):
        for params, wrong in (({}, "Field required"), ({"uri": 5}, "Input should be a valid string")):
            error = (await bridge.ask(session, method, params))["error"]
            assert error == {
                "code": -32602,
                "message": f"Invalid request parameters: uri: {wrong}",
                "data": {"errors": [{"field": "uri", "message": wrong}]},
            }
    async with await bridge.post_stateless("resources/list", {"cursor": 5}) as response:
        answer = await response.json()
        assert (response.status, answer["error"]["data"]["errors"][0]["field"]) == (400, "cursor")
    assert (await bridge.ask(session, "resources/list", {"cursor": "x"}))["error"]["code"] == -32602


async def test_names_of_fields_are_the_clients(bridge: Served) -> None:
    """What is wrong is named as far as that is short, whatever characters it has; values are not repeated."""
    session = await bridge.initialize()
    for key in ("é", "a" * 100_000, "\u202e\0"):
        params = {"name": "x", "arguments": {key: 5, "other": 1}}
        async with await bridge.post(bridge.message("prompts/get", params), session) as response:
            error = (await response.json())["error"]
        assert error["code"] == -32602
        assert len(error["message"]) < 1000
        assert error["data"]["errors"][0]["field"].startswith("arguments.")
    many = {str(number): number for number in range(1000)}
    answer = await bridge.ask(session, "prompts/get", {"name": "x", "arguments": many})
    assert len(answer["error"]["data"]["errors"]) == 5


async def test_lists(bridge: Served) -> None:
    """Fixed ones and templates are listed apart, in pages, sorted by their URI."""
    for n in range(1000):
        bridge.editor.add_resource(f"many://{n:04}", text)
    session = await bridge.initialize()
    first = (await bridge.ask(session, "resources/list"))["result"]
    assert len(first["resources"]) == 1000
    second = (await bridge.ask(session, "resources/list", {"cursor": first["nextCursor"]}))["result"]
    assert [item["uri"] for item in second["resources"]][:2] == ["test://a", "test://b"]
    templates = (await bridge.ask(session, "resources/templates/list"))["result"]["resourceTemplates"]
    assert [item["uriTemplate"] for item in templates] == ["test://t/{+path}"]


def test_token_bucket() -> None:
    """Full at the beginning, refilled with time, never beyond its size."""
    bucket = TokenBucket(10, 2, 0.0)
    assert [bucket.take(0.0) for _ in range(3)] == [0, 0, 100]
    assert bucket.take(0.05) == 50
    assert bucket.take(0.1) == 0
    assert [bucket.take(9.0) for _ in range(3)] == [0, 0, 100]


async def test_too_many_reads() -> None:
    """At the limit nothing happens, one more is refused for a time; each client has a limit of its own."""
    async with served(Settings(limits=Limits(resource_rate=1, resource_burst=2))) as bridge:
        prepare(bridge)
        first, second = await bridge.initialize(), await bridge.initialize()
        for session in (first, second, None):
            for _ in range(2):
                assert "result" in (await read(bridge, session, "test://a"))[1]
            _, answer = await read(bridge, session, "test://a")
            assert answer["error"]["code"] == -32004
            assert 0 < answer["error"]["data"]["retryAfterMs"] <= 1000
        # Calls of tools have no such limit, and neither has another connection.
        bridge.editor.add_tool("echo", lambda ctx, arguments: "fine")
        assert (await bridge.call(first, "echo"))["content"][0]["text"] == "fine"
        async with aiohttp.ClientSession(headers=bridge.http.headers) as other:
            bridge.http, kept = other, bridge.http
            assert "result" in (await read(bridge, None, "test://a"))[1]
            bridge.http = kept


async def test_a_session_hears_what_it_subscribed_to(bridge: Served) -> None:
    """Updates reach those who asked, once each, until they unsubscribe."""
    one, other = await bridge.initialize(), await bridge.initialize()
    for _ in range(2):
        assert (await bridge.ask(one, "resources/subscribe", {"uri": "test://a"}))["result"] == {}
    await bridge.ask(other, "resources/subscribe", {"uri": "test://t/x"})
    assert counted(bridge) == 2
    async with await bridge.get(one) as response, await bridge.get(other) as its:
        stream, its_stream = events(response), events(its)
        await next_event(stream)
        await next_event(its_stream)
        bridge.editor.update("test://a")
        expected = {"method": "notifications/resources/updated", "params": {"uri": "test://a"}}
        assert (await next_event(stream))[2] == {"jsonrpc": "2.0"} | expected
        bridge.editor.update("test://t/x")
        assert (await next_event(its_stream))[2]["params"] == {"uri": "test://t/x"}
        for _ in range(2):
            assert (await bridge.ask(one, "resources/unsubscribe", {"uri": "test://a"}))["result"] == {}
        await eventually(lambda: counted(bridge) == 1)
        await bridge.ask(one, "resources/subscribe", {"uri": "test://b"})
        bridge.editor.update("test://a")
        bridge.editor.update("test://b")
        assert (await next_event(stream))[2]["params"] == {"uri": "test://b"}


async def test_updates_do_not_pile_up(bridge: Served) -> None:
    """What waits to be read is not said again."""
    session = await bridge.initialize()
    await bridge.ask(session, "resources/subscribe", {"uri": "test://a"})
    await bridge.ask(session, "resources/subscribe", {"uri": "test://b"})
    for _ in range(500):
        bridge.editor.update("test://a")
    bridge.editor.update("test://b")
    async with await bridge.get(session) as response:
        stream = events(response)
        await next_event(stream)
        uris = [(await next_event(stream))[2]["params"]["uri"] for _ in range(2)]
    assert uris == ["test://a", "test://b"]


async def test_subscriptions_end_with_the_session(bridge: Served) -> None:
    """The editor is told, and the session that is revived by its id begins without them."""
    session, deleted = await bridge.initialize(), await bridge.initialize()
    await bridge.ask(session, "resources/subscribe", {"uri": "test://a"})
    await bridge.ask(deleted, "resources/subscribe", {"uri": "test://a"})
    async with bridge.http.delete(bridge.url + "/mcp", headers={"Mcp-Session-Id": deleted}):
        await eventually(lambda: counted(bridge) == 1)

    sessions = bridge.app.handlers.sessions
    sessions.drop(sessions._by_id[session])
    await eventually(lambda: counted(bridge) == 0)
    assert "result" in await bridge.ask(session, "resources/list")
    assert counted(bridge) == 0


@pytest.mark.slow
async def test_a_session_takes_no_more_than_its_share(bridge: Served) -> None:
    """Beyond its limit a session is told to unsubscribe, however fast it asks; others are not concerned."""
    one, other = await bridge.initialize(), await bridge.initialize()
    room = asyncio.Semaphore(50)

    async def subscribe(session: str, number: int) -> Any:
        async with room:
            return await bridge.ask(session, "resources/subscribe", {"uri": f"test://t/{number}"})

    most = session_share(Limits().sessions)
    answers = await asyncio.gather(*(subscribe(one, number) for number in range(most + 20)))
    refused = [answer["error"] for answer in answers if "error" in answer]
    assert len(refused) == 20
    assert {error["data"]["code"] for error in refused} == {"busy"}
    assert "unsubscribe from some first" in refused[0]["message"]
    assert counted(bridge) == most
    assert "result" in await subscribe(other, 1)
    await bridge.ask(one, "resources/unsubscribe", {"uri": "test://t/1"})
    assert "result" in await subscribe(one, most + 30)


def test_all_sessions_find_room() -> None:
    """What the sessions may hold together is no more than what the editor grants their bridge."""
    text = (ROOT / "lua" / "mcp-tools" / "rpc" / "subscriptions.lua").read_text()
    found = re.search(r"^M\.MAX_URIS = (\d+)$", text, re.MULTILINE)
    assert found is not None
    for sessions in (1, 3, Limits().sessions, 1000):
        assert 0 < session_share(sessions) * sessions <= int(found[1])


@pytest.mark.slow
async def test_what_cannot_be_subscribed_to(bridge: Served) -> None:
    """An unknown resource is a miss like any other; an editor that is silent is said to be."""
    session = await bridge.initialize()
    answer = await bridge.ask(session, "resources/subscribe", {"uri": "test://none"})
    expected = {"code": -32002, "message": "Resource not found", "data": {"uri": "test://none"}}
    assert answer["error"] == expected
    bridge.editor.silent = True
    answer = await bridge.ask(session, "resources/subscribe", {"uri": "test://a"})
    assert answer["error"]["data"]["code"] == "editor_blocked"
    bridge.editor.recover()
    assert "result" in await bridge.ask(session, "resources/list")
    assert counted(bridge) == 0, "what came too late was taken back"


async def test_listening(bridge: Served) -> None:
    """A stream of the stateless era confirms what can be watched, and ends its subscriptions with it."""
    uris = ["test://a", "test://none", "test://b", "test://a"]
    params = {"notifications": {"resourceSubscriptions": uris, "promptsListChanged": True}}
    async with await bridge.post_stateless("subscriptions/listen", params) as response:
        stream = events(response)
        confirmed = (await next_event(stream))[2]["params"]["notifications"]
        assert confirmed == {"resourceSubscriptions": ["test://a", "test://b"], "promptsListChanged": True}
        assert counted(bridge) == 2
        bridge.editor.update("test://b")
        assert (await next_event(stream))[2]["params"]["uri"] == "test://b"
        bridge.editor.add_prompt("p", lambda ctx, arguments: "x")
        assert (await next_event(stream))[2]["method"] == "notifications/prompts/list_changed"
    await eventually(lambda: counted(bridge) == 0)


async def test_changed_lists_are_announced(bridge: Served) -> None:
    """Resources and templates share an announcement; a burst is one."""
    session = await bridge.initialize()
    async with await bridge.get(session) as response:
        stream = events(response)
        await next_event(stream)
        bridge.editor.add_resource("test://more", text)
        bridge.editor.add_resource("test://more/{x}", text)
        bridge.editor.add_prompt("more", lambda ctx, arguments: "x")
        seen = [(await next_event(stream))[2]["method"] for _ in range(2)]
    assert seen == ["notifications/resources/list_changed", "notifications/prompts/list_changed"]


async def test_bytes_that_are_no_text(bridge: Served) -> None:
    """Invalid UTF-8 in a result is an error that says so."""
    bridge.editor.add_resource("test://odd", lambda ctx, params: "a\udcffb")
    _, answer = await read(bridge, await bridge.initialize(), "test://odd")
    assert answer["error"]["data"]["code"] == "not_serializable"


async def test_a_read_can_be_cancelled(bridge: Served) -> None:
    """As any other call: the handler hears why, the request is answered."""
    contexts: list[ToolContext] = []

    async def wait(ctx: ToolContext, params: dict[str, Any]) -> None:
        contexts.append(ctx)
        await asyncio.Event().wait()

    bridge.editor.add_resource("test://wait", wait)
    session = await bridge.initialize()
    message = bridge.message("resources/read", {"uri": "test://wait"})
    asking = asyncio.create_task(bridge.post(message, session))
    await eventually(lambda: contexts)
    note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": message["id"]}}
    async with await bridge.post(note, session):
        pass
    async with await asking as response:
        assert json.loads(await response.text())["error"]["code"] == -32800
    await eventually(lambda: contexts[0].cancel_reason == "client")
