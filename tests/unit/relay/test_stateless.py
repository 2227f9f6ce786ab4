"""The relay serves a client of the stateless era by a bridge that fails."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .fakes import BROKEN, INITIALIZE, Connect, FakeBridge, answered

META = "io.modelcontextprotocol/"
TASKS = {"extensions": {META + "tasks": {}}}


def request(id_: Any, method: str, capabilities: Any = TASKS, **params: Any) -> dict[str, Any]:
    meta = {META + "protocolVersion": "2026-07-28", META + "clientCapabilities": capabilities}
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": {**params, "_meta": meta}}


def headers_of(bridge: FakeBridge, method: str) -> list[dict[str, str]]:
    """Returns the headers of the requests that name a method in them."""
    return [headers for _, headers in bridge.received if headers.get("Mcp-Method") == method]


def test_a_request_repeats_its_fields_in_headers(connect: Connect) -> None:
    client = connect(opens=False)
    for id_, name in enumerate(("plain", "täxt\n", "=?base64?x?=")):
        client.ask(request(id_, "tools/call", name=name))
        assert "result" in client.answer(id_)
    sent = headers_of(client.bridge, "tools/call")
    names = ["plain", "=?base64?dMOkeHQK?=", "=?base64?PT9iYXNlNjQ/eD89?="]
    assert [headers["Mcp-Name"] for headers in sent] == names
    for headers in sent:
        assert (headers["MCP-Protocol-Version"], headers["Mcp-Tools-Session"]) == ("2026-07-28", "s")
        assert "Mcp-Session-Id" not in headers


@pytest.mark.parametrize("params", [None, [], {"_meta": 1}, {"notifications": 1}])
def test_a_malformed_request_is_answered(connect: Connect, params: Any) -> None:
    """The client.bridge refuses it; the relay continues."""

    def answer(message: Any) -> tuple[int, str]:
        if isinstance(message, dict) and message.get("id") == 2:
            return 400, json.dumps({"jsonrpc": "2.0", "id": 2, "error": {"code": -32602, "message": "no"}})
        return answered(message)

    client = connect(answer, opens=False)
    for method in ("tools/call", "subscriptions/listen"):
        client.lines.clear()
        client.ask(request(1, "server/discover"))
        assert "result" in client.answer(1)
        client.ask({"jsonrpc": "2.0", "id": 2, "method": method, "params": params})
        assert client.answer(2)["error"]["code"] == -32602
    client.ask([{"jsonrpc": "2.0", "id": 3, "method": "x"}])
    client.answer(3)


def test_a_probe_without_tasks_is_refused(connect: Connect) -> None:
    client = connect(opens=False)
    client.ask(request("probe", "server/discover", {}))
    assert "error" in client.answer("probe")
    client.ask(INITIALIZE)
    assert client.answer(0)["result"] == {"protocolVersion": "2025-11-25"}
    assert headers_of(client.bridge, "server/discover") == []


def test_a_client_that_does_not_wait_for_its_probe_gets_a_session(connect: Connect) -> None:
    client = connect(opens=False)
    client.ask(request("probe", "server/discover"))
    client.answer("probe")
    client.ask(INITIALIZE)
    client.answer(0)
    client.ask({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    assert client.answer(1)["result"] == {}
    assert headers_of(client.bridge, "tools/list") == []


def test_a_session_that_is_gone_is_opened_again(connect: Connect) -> None:
    """A 404 is the answer to an unknown method, as in the era without sessions."""
    gone = [410]
    opened: list[Any] = []

    def answer(message: Any) -> tuple[int, str]:
        if message.get("method") == "initialize":
            opened.append(message["params"])
        if message.get("method") == "tools/call" and gone:
            return gone.pop(), ""
        if message.get("method") == "nonsense":
            error = {"code": -32601, "message": "Method not found"}
            return 404, json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error})
        return answered(message)

    client = connect(answer, opens=False)
    client.ask(request(1, "tools/call", name="x"))
    assert "result" in client.answer(1)
    assert len(opened) == 2
    assert opened[0]["capabilities"] == {}
    client.ask(request(2, "nonsense"))
    assert client.answer(2)["error"]["code"] == -32601
    assert len(opened) == 2


def test_a_broken_answer_is_an_error_unless_the_request_reads(connect: Connect) -> None:
    fails: list[int] = []

    def answer(message: Any) -> tuple[int, str]:
        if message.get("method") in ("tools/call", "server/discover") and fails:
            return fails.pop(), ""
        return answered(message)

    client = connect(answer, opens=False)
    fails.append(BROKEN)
    client.ask(request(1, "server/discover"))
    assert "result" in client.answer(1)
    fails.append(BROKEN)
    client.ask(request(2, "tools/call", name="x"))
    assert "unknown" in client.answer(2)["error"]["message"]


def test_a_subscription_can_be_the_first_request(connect: Connect) -> None:
    method = "notifications/subscriptions/acknowledged"

    def answer(message: Any) -> tuple[int, str]:
        if message.get("method") == "subscriptions/listen":
            return 200, json.dumps({"jsonrpc": "2.0", "method": method, "params": {}})
        return answered(message)

    client = connect(answer, opens=False)
    client.ask(request(1, "subscriptions/listen", notifications={"toolsListChanged": True}))
    client.wait_for(method)
    assert client.lines[0]["method"] == method
    sent = headers_of(client.bridge, "subscriptions/listen")
    assert sent[0]["Mcp-Tools-Session"] == "s"


def test_a_refused_subscription_ends(connect: Connect) -> None:
    """An error after the acknowledgment is not the client's: the stream is requested again."""
    acknowledged = {"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {}}
    error = {"jsonrpc": "2.0", "id": "l", "error": {"code": -32603, "message": "full"}}
    answers = [f"id: 1\ndata: {json.dumps(acknowledged)}\n\nid: 2\ndata: {json.dumps(error)}\n\n"] * 2
    answers.append(json.dumps(error))

    def answer(message: Any) -> tuple[int, str]:
        if message.get("method") == "subscriptions/listen":
            return 200, answers.pop()
        return answered(message)

    client = connect(answer, opens=False)
    client.ask(request(1, "server/discover"))
    client.answer(1)
    client.ask(request("l", "subscriptions/listen", notifications={"toolsListChanged": True}))
    assert client.answer("l")["error"]["message"] == "full"
    client.lines.clear()
    client.ask(request("l", "subscriptions/listen", notifications={"toolsListChanged": True}))
    client.wait_for(acknowledged["method"])
    client.wait_for("notifications/tools/list_changed")
    assert not [line for line in client.lines if line.get("id") == "l"]
