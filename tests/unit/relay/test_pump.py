"""The pump between the lines of a client and a bridge: every request is answered."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import pytest
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from mcp_tools_nvim.relay import offline
from mcp_tools_nvim.relay import pump as pumps
from mcp_tools_nvim.relay.bridge_client import BridgeClient, Missing
from tests.support import processes
from tests.support.nvim import ROOT
from tests.support.served import served

from .fakes import BROKEN, INITIALIZE, TOKEN, Client, Connect, Serve, answered

CHANGED = "notifications/tools/list_changed"


def call(id_: int) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "method": "tools/list"}


CALL_STATUS = call(9) | {"method": "tools/call", "params": {"name": offline.STATUS_TOOL, "arguments": {}}}


@pytest.mark.parametrize(
    ("status", "text"),
    [(404, "Not Found"), (401, '{"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": "no"}}')],
)
def test_a_refused_request_is_answered(connect: Connect, status: int, text: str) -> None:
    """Even if the refusal is not a message or has no id."""
    refuses = True
    client = connect(lambda message: (status, text) if refuses else answered(message))
    client.ask(CALL_STATUS)
    assert str(status) in str(client.answer(9)["result"])
    refuses = False
    client.ask(INITIALIZE | {"id": 1})
    assert "result" in client.answer(1)
    refuses = True
    read = {"method": "resources/read"}
    client.ask(call(2) | read)
    client.ask([call(3) | read, call(4) | read])
    assert all("error" in client.answer(id_) for id_ in (2, 3, 4))
    assert [line for line in client.lines if line.get("id") is None and "method" not in line] == []


def test_a_tool_call_is_repeated_only_if_it_cannot_have_run(connect: Connect) -> None:
    """Or if `repeats` is set, or if it is a list, which changes nothing."""
    fails: list[int] = []

    def answer(message: Any) -> tuple[int, str]:
        if message["method"].startswith("tools/") and fails:
            return fails.pop(), ""
        return answered(message)

    client = connect(answer)
    request = {"method": "tools/call", "params": {"name": "x"}}
    for id_, failures, more in (
        *((1, [503, 503], request), (2, [BROKEN], request), (3, [BROKEN], {}), (4, [BROKEN], request)),
    ):
        client.pump.repeats = id_ == 4
        fails += failures
        client.ask(call(id_) | more)
        got = client.answer(id_)
        assert "unknown" in got["error"]["message"] if id_ == 2 else "result" in got


def test_a_late_initialize_is_answered_offline(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pumps, "OPEN_SECONDS", 0.2, raising=False)
    released = threading.Event()

    def answer(message: Any) -> tuple[int, str]:
        if message.get("id") == 0:
            released.wait(20)
        return answered(message)

    client = connect(answer)
    assert client.answer(0)["result"]["capabilities"], "answered without the bridge"
    client.ask(INITIALIZE | {"id": 1})
    assert client.answer(1)["result"] == {"protocolVersion": "2025-11-25"}, "answered by the bridge"
    released.set()


def test_a_foreign_server_on_the_port_gets_no_token(connect: Connect, serve: Serve) -> None:
    client = connect()
    client.bridge.stop()
    foreign_server = serve(token=None, port=client.bridge.server_port)
    client.ask(call(1) | {"method": "resources/read"})
    assert "nobody" in client.answer(1)["error"]["message"]
    before, deadline = len(foreign_server.received), time.monotonic() + 5
    while len(foreign_server.received) < before + 2:  # the stream is opened again and again
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert TOKEN not in str(foreign_server.received)


def test_an_internal_error_ends_only_its_request(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    client = connect()
    with monkeypatch.context() as patch:
        patch.setattr(BridgeClient, "post", lambda *_, **__: 1 / 0)
        client.ask(call(1))
        assert "error" in client.answer(1)
        client.ask(INITIALIZE | {"id": 2})
        assert "error" in client.answer(2)
    client.ask(call(3))
    assert "result" in client.answer(3)


def test_a_lost_session_is_opened_again_without_a_request(connect: Connect, serve: Serve) -> None:
    begun, listened = threading.Semaphore(0), threading.Event()

    def answer(message: Any) -> tuple[int, str]:
        if isinstance(message, dict) and message.get("method") == "initialize":
            bridge.stream = lambda _: (200, "")
            begun.release()
        return answered(message)

    bridge = serve(answer)
    client = connect(bridge)
    assert begun.acquire(timeout=5)
    bridge.stream = lambda _: (listened.set() or 200, "")
    assert listened.wait(5)
    bridge.stream = lambda _: (404, "Not Found")
    assert begun.acquire(timeout=5)
    client.wait_for(CHANGED)


def test_a_resumed_answer_releases_its_connection_once(connect: Connect) -> None:
    """Two requests after it do not share one."""
    both = threading.Barrier(2)

    def answer(message: Any) -> tuple[int, str]:
        if message.get("id") == 1:
            return 200, 'id: 7\ndata: {"jsonrpc": "2.0", "method": "notifications/message"}\n\n'
        if message.get("id") in (2, 3):
            both.wait(5)
        return answered(message)

    def stream(headers: dict[str, str]) -> tuple[int, str]:
        if headers.get("Last-Event-ID") != "7":
            return 405, ""
        return 200, 'id: 8\ndata: {"jsonrpc": "2.0", "id": 1, "result": {}}\n\n'

    client = connect(answer, stream)
    client.ask(call(1))
    assert "result" in client.answer(1)
    client.ask(call(2))
    client.ask(call(3))
    assert all("result" in client.answer(id_) for id_ in (2, 3))


def test_several_signals_end_the_process_cleanly(serve: Serve) -> None:
    deleting, finish = threading.Event(), threading.Event()

    def on_delete() -> None:
        deleting.set()
        finish.wait(5)

    bridge = serve()
    bridge.on_delete = on_delete
    env = {**os.environ, "NVIM_MCP_TOKEN": TOKEN}
    pipe = subprocess.PIPE
    command = [sys.executable, str(ROOT / "bridge" / "mcp_tools_nvim"), "stdio", "--url", bridge.url]
    with processes.begin(command, cwd=ROOT, env=env, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(INITIALIZE) + "\n")
        process.stdin.flush()
        assert "result" in process.stdout.readline()
        process.terminate()
        assert deleting.wait(5)
        process.terminate()
        process.send_signal(signal.SIGINT)
        finish.set()
        assert (process.wait(5), process.stderr and process.stderr.read()) == (0, "")


@pytest.mark.slow
def test_an_absent_editor_is_searched_for_rarely(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pumps, "RETRY_SECONDS", 0.01)
    client = connect()
    client.bridge.stop()
    client.wait_for(CHANGED)
    time.sleep(1.0)
    before = client.searches
    time.sleep(1.0)
    assert client.searches - before <= 3
    client.ask(call(1))
    client.answer(1)
    time.sleep(0.5)
    assert client.searches - before > 3


def test_a_cancel_is_sent_after_its_request(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    received: list[str] = []
    come = threading.Semaphore(0)

    def answer(message: Any) -> tuple[int, str]:
        received.append(message["method"])
        come.release()
        return answered(message)

    client = connect(answer)
    connect = BridgeClient._connection

    def slow(self: BridgeClient) -> Any:
        if threading.current_thread() is not threading.main_thread():
            time.sleep(0.3)
        return connect(self)

    monkeypatch.setattr(BridgeClient, "_connection", slow)
    client.ask(call(1) | {"method": "tools/call"})
    client.ask({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
    for _ in range(3):
        assert come.acquire(timeout=5)
    assert received == ["initialize", "tools/call", "notifications/cancelled"]


async def test_without_an_editor_initialize_has_the_same_answer_as_the_bridge() -> None:
    assert HANDSHAKE_PROTOCOL_VERSIONS == offline.VERSIONS
    async with served() as bridge:
        for version in (*offline.VERSIONS, "2026-07-28", "x"):
            client = {"name": "t", "version": "1"}
            params = {"protocolVersion": version, "capabilities": {}, "clientInfo": client}
            async with await bridge.post(bridge.message("initialize", params)) as response:
                online = (await response.json())["result"]
            assert {**offline.initialize(params), "instructions": None} == {**online, "instructions": None}


@pytest.mark.slow
def test_a_client_stays_with_its_editor_while_that_can_be_reached(connect: Connect, serve: Serve) -> None:
    """Although another one is nearer; a restart of the bridge is awaited."""
    client, other = connect(), serve()
    client._endpoint = nearer = BridgeClient(other.url, TOKEN)
    client.ask(CALL_STATUS)
    assert "is connected" in client.answer(9)["result"]["content"][0]["text"]
    client.bridge.stop()
    time.sleep(1)
    serve(port=client.bridge.server_port)
    client.ask(call(1))
    assert "result" in client.answer(1)
    assert "/mcp" not in [path for path, _ in other.received]
    nearer.close()


def check_answered(client: Client) -> None:
    """Requests 1 to 8 are answered within 2.5 s."""
    begun = time.monotonic()
    for id_ in range(1, 9):
        client.answer(id_)
    assert time.monotonic() - begun < 2.5


def test_requests_wait_for_an_editor_together(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pumps, "RESTART_SECONDS", 0.5)
    client = connect(stream=lambda _: (404, ""))
    client.pump._find = lambda: Missing("it is starting", may_start=True)
    with client.pump._opening:  # all wait before the first one looks
        client.bridge.stop()
        for id_ in range(1, 9):
            client.ask(call(id_))
        time.sleep(0.3)
    check_answered(client)


def test_requests_wait_for_a_bridge_together(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pumps, "OPEN_SECONDS", 0.5)
    silent, over = threading.Event(), threading.Event()

    def answer(message: Any) -> tuple[int, str]:
        if silent.is_set() and message["method"] == "initialize":
            over.wait(10)
        return (404, "Not Found") if silent.is_set() else answered(message)

    client = connect(answer)
    silent.set()
    for id_ in range(1, 9):
        client.ask(call(id_))
    check_answered(client)
    over.set()
