"""Messages with wrong parameters, ids, batches or capabilities: the outcome, and nothing runs."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.support.bridge import Bridge
from tests.support.raw import Raw, code_of, initialize_params, text_of

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_invalid_params_and_unknown_methods_have_their_codes(client: Raw) -> None:
    names = (1, None, "nvim_nope", "", "nvim_echo\0", "x" * 10_000)
    calls: list[Any] = [None, {}, *({"name": name, "arguments": {}} for name in names)]
    calls += [{"name": "nvim_echo", "arguments": wrong} for wrong in ([], "x")]
    wrong_params: list[tuple[str, Any]] = [("tools/call", params) for params in calls]
    wrong_params += [("tools/list", {"cursor": 1}), ("tools/list", {"cursor": "no such"})]
    wrong_params += [("logging/setLevel", {"level": "loud"}), ("logging/setLevel", {})]
    unknown = ("nope", "", "tools/", "__init__", "notifications/initialized")
    for method, params in (*wrong_params, *((method, {}) for method in unknown)):
        status, answer = await client.send(client.message(method, params))
        code = -32601 if method in unknown else -32602
        assert (status, answer["error"]["code"]) == (200, code), (method, params, answer)
    status, answer = await client.send(client.message("ping") | {"params": [1]})
    assert (status, answer["error"]["code"]) == (400, -32602)


async def test_odd_meta_and_progress_tokens_do_no_harm(client: Raw) -> None:
    valid: list[Any] = [None, {}, {"x/y": [1]}, *({"progressToken": token} for token in (0, "", "x" * 1000))]
    invalid: list[Any] = [1, "x", [], *({"progressToken": token} for token in ({}, None, 1.5))]
    for meta in valid + invalid:
        message = client.call_message("count", {"steps": 1})
        message["params"]["_meta"] = meta
        status, answer = await client.send(message)
        assert status == 200
        if "result" in answer:
            assert text_of(answer["result"]) == "counted", meta
        else:
            assert answer["error"]["code"] == -32602
            assert meta in invalid


async def test_unknown_notifications_and_stray_answers_change_nothing(client: Raw) -> None:
    for body in (
        {"jsonrpc": "2.0", "method": "notifications/nope"},
        {"jsonrpc": "2.0", "method": "notifications/progress", "params": {}},
        {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "nvim_mark", "arguments": {}}},
        {"jsonrpc": "2.0", "id": 99, "result": {}},
        {"jsonrpc": "2.0", "id": "x", "error": {"code": 1, "message": "no"}},
    ):
        assert (await client.send(body))[0] == 202, body
    assert await client.bridge.nvim.lua("return Seen.late") == 0


async def test_an_id_in_flight_cannot_be_used_again(shared: Bridge, client: Raw) -> None:
    first = client.call_message("later", {"ms": 300, "value": "first"}) | {"id": "7"}
    call = asyncio.create_task(client.send(first))
    await shared.nvim.wait_for("return require('mcp-tools.registry').pending_count() == 1")
    status, answer = await client.send(client.call_message("mark") | {"id": "7"})
    assert (status, answer["error"]["code"]) == (400, -32600)
    async with Raw(shared) as other:
        await other.initialize()
        for sender, id_ in ((other, "7"), (client, 7)):
            status, answer = await sender.send(other.call_message("echo", {"value": "other"}) | {"id": id_})
            assert (status, text_of(answer["result"])) == (200, "other")
    assert text_of((await call)[1]["result"]) == "first"
    assert await shared.nvim.lua("return Seen.late") == 0
    assert (await client.send(client.message("ping") | {"id": "7"}))[0] == 200


async def test_only_sessions_of_2025_03_26_may_send_batches(shared: Bridge, client: Raw) -> None:
    """A fault in one is reported, and nothing of it runs twice."""
    mark, ping = client.call_message("mark"), client.message("ping")
    for version in ("2024-11-05", "2025-06-18", "2025-11-25"):
        await client.initialize(version)
        status, answer = await client.send([ping, mark])
        assert (status, answer["error"]["code"]) == (400, -32600), version
    assert (await client.send([ping], Mcp_Session_Id=None))[0] == 400
    await client.initialize("2025-03-26")
    assert (await client.send([{"jsonrpc": "2.0", "method": "notifications/x"}]))[0] == 202
    status, answers = await client.send([mark, {"jsonrpc": "2.0", "method": "notifications/x"}, ping])
    assert status == 200
    assert {answer["id"] for answer in answers} == {mark["id"], ping["id"]}
    assert await shared.nvim.lua("return Seen.late") == 1
    for batch in ([mark, mark], [mark, 1], [mark, client.message("initialize", {})], []):
        status, answer = await client.send(batch)
        assert (status, answer["error"]["code"]) == (400, -32600), batch
    assert await shared.nvim.lua("return Seen.late") == 1
    many = [client.call_message("echo", {"value": n}) for n in range(200)]
    status, answers = await client.send(many)
    assert [json.loads(text_of(answer["result"])) for answer in answers] == list(range(200))


async def test_a_wrong_initialize_opens_no_session(shared: Bridge, client: Raw) -> None:
    session = client.session
    for params in (None, {}, {"protocolVersion": 1}, {"protocolVersion": "2025-11-25", "capabilities": []}):
        status, answer = await client.send(client.message("initialize", params), Mcp_Session_Id=None)
        assert (status, answer["error"]["code"]) == (200, -32602), params
    huge = initialize_params(experimental={str(n): {} for n in range(3000)})
    huge["clientInfo"] = {"name": "n" * 5000, "version": "v" * 5000}
    status, _ = await client.send(client.message("initialize", huge), Mcp_Session_Id=None)
    assert status == 200
    assert (await client.send(client.message("ping"), Mcp_Session_Id=session))[0] == 200
    assert code_of(await client.call("fail", {"how": "x"})) == "tool_error"


async def test_deep_capabilities_and_large_numbers_do_no_harm(client: Raw) -> None:
    deep: Any = {}
    for _ in range(90):
        deep = {"a": deep}
    for declared in (deep, {"n": 10**30}, {"n": 1e308}):
        await client.initialize(capabilities={"experimental": {"x": declared}})
        assert text_of(await client.call("mark")) == "ran", declared


async def test_very_large_capabilities_are_ignored(client: Raw) -> None:
    declared = {"experimental": {f"x{number}": {} for number in range(11_000)}, "roots": {}}
    await client.initialize(capabilities=declared)
    await client.bridge.nvim.lua(
        "_G.declared = {} probe.executor():watch(function(call)"
        " table.insert(_G.declared, vim.tbl_keys(call.capabilities)) end)"
    )
    assert text_of(await client.call("echo", {"value": "x"})) == "x"
    assert ["roots"] in await client.bridge.nvim.lua("return _G.declared")
