"""Answers of clients that are large, late, malformed or missing, over both session transports."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from mcp_tools_nvim.mcp.kernel import well_formed
from mcp_tools_nvim.values import Limits, Settings
from tests.support.memory import ToolContext
from tests.support.served import INITIALIZED, Served, events, next_event, served

EXTENSION = "ai.nimblebrain/host-resources"
READ = {"method": "ai.nimblebrain/resources/read", "params": {"uri": "files://a"}}
ROOTS = {"method": "roots/list"}
ELICIT = {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": {"type": "object"}}}
LIMITS = Limits(request_body=4096, resource=8192)
ANSWER_LIMIT = 2 * LIMITS.resource


class Asked:
    """A client during a call: it reads questions and posts answers."""

    def __init__(self, bridge: Served, path: str, session: str | None, stream: AsyncIterator[Any]) -> None:
        self.bridge = bridge
        self.path = path
        self.session = session
        self.stream = stream

    async def receive(self) -> Any:
        while not (data := (await next_event(self.stream))[2]):
            pass
        return data

    async def post(self, body: Any, *, chunked: bool = False) -> int:
        """The status of a value or of bytes, with their length declared or not."""
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        head = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        if self.session is not None:
            head["Mcp-Session-Id"] = self.session

        async def pieces() -> AsyncIterator[bytes]:
            for start in range(0, len(body), 1000):
                yield body[start : start + 1000]

        data = pieces() if chunked else body
        async with self.bridge.http.post(self.bridge.url + self.path, data=data, headers=head) as response:
            return response.status

    async def outcome(self) -> dict[str, Any]:
        """The answers that the tool received."""
        return json.loads((await self.receive())["result"]["content"][0]["text"])


@asynccontextmanager
async def asked(bridge: Served, transport: str, *requests: dict[str, Any]) -> AsyncIterator[Asked]:
    """A call whose tool sends these requests, named a, b, …, and returns the answers."""
    named = {chr(ord("a") + n): request for n, request in enumerate(requests)}

    async def ask(ctx: ToolContext, arguments: dict[str, Any]) -> Any:
        return await ctx.ask(**named)

    bridge.editor.add_tool("ask", ask)
    if transport == "sessions":
        session = await bridge.initialize()
        async with await bridge.post(bridge.call_message("ask"), session) as response:
            yield Asked(bridge, "/mcp", session, events(response))
        return
    async with bridge.http.get(bridge.url + "/sse", headers={"Accept": "text/event-stream"}) as response:
        stream = events(response)
        client = Asked(bridge, (await next_event(stream))[2], None, stream)
        await client.post(bridge.initialize_message("2024-11-05"))
        await client.receive()
        await client.post(INITIALIZED)
        await client.post(bridge.call_message("ask"))
        yield client


def answer(question: dict[str, Any], size: int) -> bytes:
    """An answer of this number of bytes."""
    empty = json.dumps({"jsonrpc": "2.0", "id": question["id"], "result": {"text": ""}}).encode()
    return empty[:-3] + b"x" * (size - len(empty)) + empty[-3:]


@pytest.fixture
async def bridge() -> AsyncIterator[Served]:
    async with served(Settings(limits=LIMITS)) as running:
        yield running


BOTH = [(transport, chunked) for transport in ("sessions", "sse") for chunked in (False, True)]
on_both = pytest.mark.parametrize(("transport", "chunked"), BOTH)


@on_both
async def test_an_answer_may_be_as_large_as_a_resource(bridge: Served, transport: str, chunked: bool) -> None:
    """Only while its question is open."""
    async with asked(bridge, transport, READ) as client:
        question = await client.receive()
        body = answer(question, ANSWER_LIMIT)
        assert len(body) == ANSWER_LIMIT > LIMITS.request_body
        assert await client.post(body, chunked=chunked) == 202
        assert len((await client.outcome())["a"]["result"]["text"]) > LIMITS.request_body
        assert await client.post(body, chunked=chunked) == 413


@on_both
async def test_an_answer_that_is_too_large_is_an_error(bridge: Served, transport: str, chunked: bool) -> None:
    async with asked(bridge, transport, READ) as client:
        question = await client.receive()
        assert await client.post(answer(question, ANSWER_LIMIT + 1), chunked=chunked) == 413
        error = (await client.outcome())["a"]["error"]
    assert error["code"] == -32005
    assert f"larger than {ANSWER_LIMIT} bytes" in error["message"]


async def test_with_two_open_questions_an_answer_that_is_too_large_ends_neither(bridge: Served) -> None:
    async with asked(bridge, "sessions", READ, READ) as client:
        questions = [await client.receive() for _ in range(2)]
        assert await client.post(answer(questions[0], ANSWER_LIMIT + 1)) == 413
        for question in questions:
            assert await client.post(answer(question, 200)) == 202
        received = await client.outcome()
        assert {name: list(answer) for name, answer in received.items()} == {"a": ["result"], "b": ["result"]}


async def test_errors_keep_their_data(bridge: Served) -> None:
    """An invalid code becomes 0, an invalid result an empty object."""
    async with asked(bridge, "sessions", READ, READ, READ) as client:
        questions = [await client.receive() for _ in range(3)]
        slow = {"code": -32004, "message": "slowly", "data": {"retryAfterMs": 5}}
        answers = ({"error": slow}, {"error": {"code": "x"}}, {"result": [1]})
        for question, content in zip(questions, answers, strict=True):
            body = {"jsonrpc": "2.0", "id": question["id"]} | content
            assert await client.post(body) == 202
        received = await client.outcome()
    assert received == {"a": {"error": slow}, "b": {"error": {"code": 0, "message": ""}}, "c": {"result": {}}}


async def test_requests_that_need_no_user_have_a_deadline() -> None:
    async with (
        served(Settings(limits=Limits(answer=50))) as bridge,
        asked(bridge, "sessions", ELICIT, ROOTS, READ) as client,
    ):
        questions = {(message := await client.receive())["method"]: message for _ in range(3)}
        given_up = {(await client.receive())["params"]["requestId"] for _ in range(2)}
        assert given_up == {questions["roots/list"]["id"], questions[READ["method"]]["id"]}
        id_ = questions["elicitation/create"]["id"]
        assert await client.post({"jsonrpc": "2.0", "id": id_, "result": {"action": "cancel"}}) == 202
        received = await client.outcome()
    assert received["a"] == {"result": {"action": "cancel"}}
    late = {"error": {"code": -32001, "message": "no answer within 0.05 s"}}
    assert (received["b"], received["c"]) == (late, late)


async def test_a_malformed_capability_is_ignored(bridge: Served) -> None:
    seen: asyncio.Queue[Any] = asyncio.Queue()
    bridge.editor.add_tool("look", lambda ctx, arguments: seen.put_nowait(ctx.request.sender.capabilities))
    declared: dict[str, Any] = {EXTENSION: "yes", "org.example/other": {"x": 1}}
    for capabilities, expected in (
        ({"extensions": declared, "roots": {}}, {"extensions": {"org.example/other": {"x": 1}}, "roots": {}}),
        ({"experimental": declared}, {"experimental": {"org.example/other": {"x": 1}}}),
        ({"extensions": True, "experimental": None, "roots": {}}, {"roots": {}}),
        ({"extensions": {EXTENSION: {"read": 5}}}, {"extensions": {EXTENSION: {"read": 5}}}),
    ):
        session = await bridge.initialize(capabilities=capabilities)
        await bridge.call(session, "look")
        assert await seen.get() == expected


def test_valid_capabilities_are_not_copied() -> None:
    for params in ({}, {"capabilities": 5}, {"capabilities": {"extensions": {"a": {}}}}):
        assert well_formed(params) is params
