"""Messages that are only nearly right: parameters, ids, batches, greetings. The outcome, and no harm."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.support.bridge import Bridge
from tests.support.raw import Raw, code_of, text_of

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_params_that_are_not_for_the_method(client: Raw) -> None:
    """−32602 for malformed parameters, −32601 for unknown methods, and never −32603."""
    wrong: list[tuple[str, Any, int]] = [
        ("tools/call", None, -32602),
        ("tools/call", {}, -32602),
        ("tools/call", {"name": 1}, -32602),
        ("tools/call", {"name": None, "arguments": {}}, -32602),
        ("tools/call", {"name": "nvim_echo", "arguments": []}, -32602),
        ("tools/call", {"name": "nvim_echo", "arguments": "x"}, -32602),
        ("tools/call", {"name": "nvim_nope", "arguments": {}}, -32602),
        ("tools/call", {"name": "", "arguments": {}}, -32602),
        ("tools/call", {"name": "nvim_echo\0", "arguments": {}}, -32602),
        ("tools/call", {"name": "x" * 10_000, "arguments": {}}, -32602),
        ("tools/list", {"cursor": 1}, -32602),
        ("tools/list", {"cursor": "no such"}, -32602),
        ("logging/setLevel", {"level": "loud"}, -32602),
        ("logging/setLevel", {}, -32602),
        ("nope", {}, -32601),
        ("", {}, -32601),
        ("tools/", {}, -32601),
        ("__init__", {}, -32601),
        ("notifications/initialized", {}, -32601),
    ]
    for method, params, code in wrong:
        status, answer = await client.send(client.message(method, params))
        assert status == 200, (method, params)
        assert answer["error"]["code"] == code, (method, params, answer)
    status, answer = await client.send(client.message("ping") | {"params": [1]})
    assert answer["error"]["code"] == -32602


async def test_meta_of_every_kind(client: Raw) -> None:
    """Odd `_meta` and progress tokens do no harm."""
    for meta in (
        None,
        {},
        {"progressToken": 0},
        {"progressToken": ""},
        {"progressToken": "x" * 1000},
        {"x/y": [1]},
    ):
        message = client.call_message("count", {"steps": 1})
        message["params"]["_meta"] = meta
        status, answer = await client.send(message)
        assert status == 200
        assert text_of(answer["result"]) == "counted", meta
    for meta in (1, "x", [], {"progressToken": {}}, {"progressToken": None}, {"progressToken": 1.5}):
        message = client.call_message("echo", {"value": "x"})
        message["params"]["_meta"] = meta
        status, answer = await client.send(message)
        assert status == 200
        assert "result" in answer or answer["error"]["code"] == -32602, meta


async def test_notifications_and_answers_out_of_nowhere(client: Raw) -> None:
    """Unknown notifications and answers to nothing are taken, and change nothing."""
    for body in (
        {"jsonrpc": "2.0", "method": "notifications/nope"},
        {"jsonrpc": "2.0", "method": "notifications/progress", "params": {}},
        {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "nvim_mark", "arguments": {}}},
        {"jsonrpc": "2.0", "id": 99, "result": {}},
        {"jsonrpc": "2.0", "id": "x", "error": {"code": 1, "message": "no"}},
    ):
        assert (await client.send(body))[0] == 202, body
    assert await client.bridge.nvim.lua("return Seen.late") == 0


async def test_ids_in_flight(shared: Bridge, client: Raw) -> None:
    """A second request with an id in flight is 400, the first goes on; else it is free."""
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


async def test_batches(shared: Bridge, client: Raw) -> None:
    """Only sessions of 2025-03-26 may send them; a fault in one is told and nothing of it runs twice."""
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


async def test_initialize_that_is_wrong(shared: Bridge, client: Raw) -> None:
    """It is −32602, gives no session, and a second one in a session does no harm to it."""
    session = client.session
    for params in (None, {}, {"protocolVersion": 1}, {"protocolVersion": "2025-11-25", "capabilities": []}):
        status, answer = await client.send(client.message("initialize", params), Mcp_Session_Id=None)
        assert (status, answer["error"]["code"]) == (200, -32602), params
    huge = {
        "protocolVersion": "2025-11-25",
        "capabilities": {"experimental": {str(n): {} for n in range(3000)}},
        "clientInfo": {"name": "n" * 5000, "version": "v" * 5000},
    }
    status, _ = await client.send(client.message("initialize", huge), Mcp_Session_Id=None)
    assert status == 200
    assert (await client.send(client.message("ping"), Mcp_Session_Id=session))[0] == 200
    assert code_of(await client.call("fail", {"how": "x"})) == "tool_error"


async def test_capabilities_of_a_hundred_levels(shared: Bridge, client: Raw) -> None:
    """What a client declares may be as deep, and its numbers as large, without any harm to a call."""
    deep: Any = {}
    for _ in range(90):
        deep = {"a": deep}
    for declared in (deep, {"n": 10**30}, {"n": 1e308}):
        params = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"experimental": {"x": declared}},
            "clientInfo": {"name": "deep", "version": "1"},
        }
        headers = client.headers(Mcp_Session_Id=None)
        async with client.http.post(
            f"{shared.url}/mcp", json=client.message("initialize", params), headers=headers
        ) as response:
            assert response.status == 200
            session = response.headers["Mcp-Session-Id"]
        status, answer = await client.send(client.call_message("mark"), Mcp_Session_Id=session)
        assert (status, text_of(answer["result"])) == (200, "ran"), declared


async def test_capabilities_that_nobody_reads(client: Raw) -> None:
    """A declaration of thousands of values counts as absent, and does not reach the editor."""
    declared = {"experimental": {f"x{number}": {} for number in range(11_000)}, "roots": {}}
    await client.initialize(capabilities=declared)
    await client.bridge.nvim.lua(
        """
        _G.declared = {}
        probe.executor():watch(function(call)
          table.insert(_G.declared, vim.tbl_keys(call.capabilities))
        end)
        """
    )
    assert text_of(await client.call("echo", {"value": "x"})) == "x"
    assert ["roots"] in await client.bridge.nvim.lua("return _G.declared")
