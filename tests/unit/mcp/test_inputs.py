"""Requests of a tool to its client, as messages over HTTP."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity

from tests.support.memory import ToolContext
from tests.support.served import TOKEN, Served, events, eventually, next_event, served

ELICIT = {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": {"type": "object"}}}
ROOTS = {"method": "roots/list"}
BOTH = {"elicitation": {}, "roots": {}}


@pytest.fixture
async def bridge() -> AsyncIterator[Served]:
    async with served() as running:

        async def both(ctx: ToolContext, arguments: dict[str, Any]) -> Any:
            return await ctx.ask(name=ELICIT, folders=ROOTS)

        running.editor.add_tool("both", both)
        yield running


def answer_to(question: dict[str, Any], **content: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": question["id"], **content}


@pytest.mark.parametrize("id_as", [int, str])
async def test_questions_are_sent_on_the_stream_of_the_call(bridge: Served, id_as: type[int | str]) -> None:
    """An id that the client returns as text is accepted."""
    session = await bridge.initialize(capabilities=BOTH)
    async with await bridge.post(bridge.call_message("both"), session) as response:
        stream = events(response)
        questions = {}
        while len(questions) < 2:
            data = (await next_event(stream))[2]
            if data:
                questions[data["method"]] = data
        assert questions["elicitation/create"]["params"] == ELICIT["params"]
        mcp_error = answer_to(questions["roots/list"], error={"code": -1, "message": "no"})
        accepted = answer_to(questions["elicitation/create"], result={"action": "accept"})
        accepted["id"] = id_as(accepted["id"])
        for message in (mcp_error, accepted, accepted):  # a second answer is ignored
            assert (await bridge.answer(message, session))[0] == 202
        last = (await next_event(stream))[2]
    assert last["result"]["content"][0]["text"] == (
        '{"name":{"result":{"action":"accept"}},"folders":{"error":{"code":-1,"message":"no"}}}'
    )


async def test_the_end_of_a_session_ends_its_questions(bridge: Served) -> None:
    session = await bridge.initialize(capabilities=BOTH)
    async with await bridge.post(bridge.call_message("both"), session) as response:
        stream = events(response)
        messages = [(await next_event(stream))[2] for _ in range(3)]
        asked = {data["id"] for data in messages if data}
        assert await bridge.delete(session) == 200
        rest = [data async for _, _, data in stream if data]
    cancelled = {m["params"]["requestId"] for m in rest if m.get("method") == "notifications/cancelled"}
    assert cancelled >= asked
    await eventually(lambda: bridge.editor.cancels)
    assert bridge.editor.cancels[0][1] == "session_closed"
    assert bridge.parts.calls.in_flight == 0


async def test_foreign_and_forged_request_states_have_the_same_error(bridge: Served) -> None:
    params: dict[str, Any] = {"name": "nvim_both", "arguments": {}}
    state = (await bridge.answer_stateless("tools/call", params))[1]["result"]["requestState"]
    params["inputResponses"] = {"folders": {"roots": []}, "name": {"action": "decline"}}
    async with served() as other:
        other.parts.hello = replace(other.parts.hello, boot="the next life")
        foreign = (await other.answer_stateless("tools/call", params | {"requestState": state}))[1]["error"]
    bridge.editor.cancel(next(iter(bridge.editor.calls)), "user")
    errors = [foreign]
    for changed in (state[:-2] + "AA", "", "v1.", state + "x"):
        status, answer = await bridge.answer_stateless("tools/call", params | {"requestState": changed})
        assert status == 400
        errors.append(answer["error"])
    assert all(error == errors[0] for error in errors)
    assert errors[0]["code"] == -32602
    assert errors[0]["message"] == "Invalid or expired requestState"
    assert bridge.editor.received == []


@pytest.mark.parametrize("known", ["a proof", "the token", "the token as key"])
async def test_a_health_proof_or_the_token_does_not_seal_a_request_state(bridge: Served, known: str) -> None:
    label, token = b"mcp-tools.nvim request state", TOKEN.encode()
    async with bridge.http.get(bridge.url + "/health", params={"nonce": label.decode()}) as response:
        proof = (await response.json())["proof"]
    key = {
        "a proof": bytes.fromhex(proof),
        "the token": hmac.digest(label + b" 1", token, "sha256"),
        "the token as key": hmac.digest(token, label, "sha256"),
    }[known]
    params: dict[str, Any] = {"name": "nvim_both", "arguments": {}}
    _, answer = await bridge.answer_stateless("tools/call", params)
    assert answer["result"]["resultType"] == "input_required"
    call = next(iter(bridge.editor.calls))
    holder = hashlib.sha256(token).hexdigest()
    security = RequestStateSecurity(keys=[key], ttl=600, bind_principal=lambda _: holder)
    boundary = RequestStateBoundary(security, default_audience="mcp-tools.nvim")

    async def asks(context: Any) -> dict[str, Any]:
        inside = {"boot": bridge.parts.hello.boot, "task": call, "seq": 1}
        return {"resultType": "input_required", "requestState": json.dumps(inside)}

    forged: Any = await boundary(SimpleNamespace(method="tools/call", params=params), asks)  # type: ignore[arg-type]
    params["inputResponses"] = {"folders": {"roots": []}, "name": {"action": "accept"}}
    params["requestState"] = forged["requestState"]
    error = (await bridge.answer_stateless("tools/call", params))[1]["error"]
    assert (error["code"], error["message"]) == (-32602, "Invalid or expired requestState")
    assert bridge.editor.received == []
