"""The pump between the lines of a client and a bridge: every request is answered."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from mcp_tools_nvim.instances.proof import prove
from mcp_tools_nvim.relay import offline
from mcp_tools_nvim.relay import pump as pumps
from mcp_tools_nvim.relay.bridge_client import BridgeClient, Missing
from mcp_tools_nvim.relay.pump import Pump
from tests.support import processes
from tests.support.nvim import ROOT
from tests.support.served import served

TOKEN = "a-token-of-this-test"
INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}}

CALL_STATUS = {
    "jsonrpc": "2.0",
    "id": 9,
    "method": "tools/call",
    "params": {"name": offline.STATUS_TOOL, "arguments": {}},
}
CHANGED = "notifications/tools/list_changed"
BROKEN = 0
"""Instead of a status: the connection ends without an answer."""

Answer = Callable[[Any], tuple[int, str]]


class FakeBridge(ThreadingHTTPServer):
    """A server whose answers the test sets; `received` has the paths and headers of all requests."""

    daemon_threads = True

    def __init__(self, token: str | None, answer: Answer, port: int = 0) -> None:
        self.received: list[tuple[str, dict[str, str]]] = []
        self.connections: list[socket.socket] = []
        self.token, self.answer = token, answer
        self.on_delete: Callable[[], Any] = lambda: None
        self.stream: Callable[[dict[str, str]], tuple[int, str]] = lambda _: (200, "")  # ends at once
        super().__init__(("127.0.0.1", port), _Handler)
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/mcp"

    def stop(self) -> None:
        self.shutdown()
        self.server_close()
        for connection in self.connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FakeBridge

    def setup(self) -> None:
        super().setup()
        self.server.connections.append(self.connection)

    def do_GET(self) -> None:
        self.server.received.append((self.path, dict(self.headers)))
        nonce = parse_qs(urlsplit(self.path).query).get("nonce")
        if nonce is None:
            self.respond(*self.server.stream(dict(self.headers)), "text/event-stream")
        elif self.server.token is None:
            self.respond(404, "Not Found")
        else:
            proof = prove(self.server.token, self.server.server_port, nonce[0])
            self.respond(200, json.dumps({"proof": proof}))

    def do_POST(self) -> None:
        self.server.received.append((self.path, dict(self.headers)))
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status, text = self.server.answer(body)
        if status == BROKEN:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self.respond(status, text, "text/event-stream" if text.startswith("id:") else None)

    def do_DELETE(self) -> None:
        self.server.on_delete()
        self.respond(200, "{}")

    def respond(self, status: int, text: str, kind: str | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.send_header("Content-Type", kind or ("application/json" if text[:1] in "[{" else "text/plain"))
        self.send_header("Mcp-Session-Id", "s")
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: Any) -> None:
        pass


def answered(message: Any) -> tuple[int, str]:
    """The answer of a working bridge."""
    if isinstance(message, dict) and "id" not in message:
        return 202, ""
    result = {"protocolVersion": "2025-11-25"} if message["method"] == "initialize" else {}
    return 200, json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result})


class Client:
    """A client of the pump, and the lines that it reads."""

    def __init__(self, url: str) -> None:
        self.lines: list[dict[str, Any]] = []
        self.searches = 0
        self._changed = threading.Condition()
        self._endpoint = BridgeClient(url, TOKEN)
        self.pump = Pump(self._find, self._write)

    def _find(self) -> BridgeClient | Missing:
        self.searches += 1
        return self._endpoint if self._endpoint.is_ours() else Missing("nobody")

    def _write(self, line: bytes) -> None:
        with self._changed:
            self.lines.append(json.loads(line))  # fails if it is not a message
            self._changed.notify_all()

    def ask(self, message: Any) -> None:
        self.pump.on_line(json.dumps(message).encode())

    def answer(self, id_: Any) -> dict[str, Any]:
        """The only answer to a request."""

        def found() -> list[dict[str, Any]]:
            return [line for line in self.lines if line.get("id") == id_ and "method" not in line]

        with self._changed:
            assert self._changed.wait_for(found, 5), f"{id_} is not answered: {self.lines}"
        (only,) = found()
        return only

    def close(self) -> None:
        self.pump.close()
        self._endpoint.close()

    def wait_for(self, method: str) -> None:
        """Waits for a notification."""

        def received() -> bool:
            return any(line.get("method") == method for line in self.lines)

        with self._changed:
            assert self._changed.wait_for(received, 10), f"no {method}: {self.lines}"


Connect = Callable[[FakeBridge], Client]
Serve = Callable[..., FakeBridge]


@pytest.fixture
def clients() -> Iterator[Connect]:
    made: list[Client] = []

    def make(bridge: FakeBridge) -> Client:
        """A client with a session."""
        made.append(client := Client(bridge.url))
        client.ask(INITIALIZE)
        assert "result" in client.answer(0)
        return client

    yield make
    for client in made:
        client.close()


@pytest.fixture
def bridges() -> Iterator[Serve]:
    """Starts servers that are stopped at the end."""
    started: list[FakeBridge] = []

    def start(answer: Answer, token: str | None = TOKEN, port: int = 0) -> FakeBridge:
        started.append(FakeBridge(token, answer, port))
        return started[-1]

    yield start
    for bridge in started:
        bridge.stop()


def call(id_: int) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "method": "tools/list"}


@pytest.mark.parametrize(
    ("status", "text"),
    [(404, "Not Found"), (401, '{"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": "no"}}')],
)
def test_a_refused_request_is_answered(clients: Connect, bridges: Serve, status: int, text: str) -> None:
    """Even if the refusal is not a message or has no id."""
    refuses = True
    bridge = bridges(lambda message: (status, text) if refuses else answered(message))
    client = clients(bridge)
    client.ask(CALL_STATUS)
    assert str(status) in str(client.answer(9)["result"])
    refuses = False
    client.ask(INITIALIZE | {"id": 1})
    assert "result" in client.answer(1)
    refuses = True
    read = {"method": "resources/read"}
    client.ask(call(2) | read)
    assert "error" in client.answer(2)
    client.ask([call(3) | read, call(4) | read])
    assert "error" in client.answer(3)
    assert "error" in client.answer(4)
    assert [line for line in client.lines if line.get("id") is None and "method" not in line] == []


def test_a_tool_call_is_repeated_only_if_it_cannot_have_run(clients: Connect, bridges: Serve) -> None:
    """Or if `repeats` is set."""
    fails: list[int] = []

    def answer(message: Any) -> tuple[int, str]:
        if message["method"].startswith("tools/") and fails:
            return fails.pop(), ""
        return answered(message)

    bridge = bridges(answer)
    client = clients(bridge)
    request = {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "x"}}
    fails += [503, 503]
    client.ask(request | {"id": 1})
    assert "result" in client.answer(1)
    fails += [BROKEN]
    client.ask(request | {"id": 2})
    assert "unknown" in client.answer(2)["error"]["message"]
    fails += [BROKEN]
    client.ask(call(4))  # a list changes nothing
    assert "result" in client.answer(4)
    client.pump.repeats = True
    fails += [BROKEN]
    client.ask(request | {"id": 3})
    assert "result" in client.answer(3)


def test_an_unanswered_initialize_is_answered_offline_and_may_be_repeated(
    clients: Connect, bridges: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pumps, "OPEN_SECONDS", 0.2, raising=False)
    released = threading.Event()

    def answer(message: Any) -> tuple[int, str]:
        if message.get("id") == 0:
            released.wait(20)
        return answered(message)

    bridge = bridges(answer)
    client = clients(bridge)
    assert client.answer(0)["result"]["capabilities"], "answered without the bridge"
    client.ask(INITIALIZE | {"id": 1})
    assert client.answer(1)["result"] == {"protocolVersion": "2025-11-25"}, "answered by the bridge"
    released.set()


def test_a_foreign_server_on_the_port_gets_no_token(clients: Connect, bridges: Serve) -> None:
    bridge = bridges(answered)
    client = clients(bridge)
    bridge.stop()
    foreign_server = bridges(answered, None, bridge.server_port)
    client.ask(call(1) | {"method": "resources/read"})
    assert "nobody" in client.answer(1)["error"]["message"]
    before, deadline = len(foreign_server.received), time.monotonic() + 5
    while len(foreign_server.received) < before + 2:  # the stream is opened again and again
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert TOKEN not in str(foreign_server.received)


def test_an_internal_error_is_the_answer_and_the_next_request_is_served(
    clients: Connect, bridges: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    bridge = bridges(answered)
    client = clients(bridge)
    with monkeypatch.context() as patch:
        patch.setattr(BridgeClient, "post", lambda *_, **__: 1 / 0)
        client.ask(call(1))
        assert "error" in client.answer(1)
        client.ask(INITIALIZE | {"id": 2})
        assert "error" in client.answer(2)
    client.ask(call(3))
    assert "result" in client.answer(3)


def test_a_lost_session_is_opened_again_without_a_request_of_the_client(
    clients: Connect, bridges: Serve
) -> None:
    begun = threading.Semaphore(0)

    def answer(message: Any) -> tuple[int, str]:
        if isinstance(message, dict) and message.get("method") == "initialize":
            bridge.stream = lambda _: (200, "")
            begun.release()
        return answered(message)

    bridge = bridges(answer)
    listened = threading.Event()
    client = clients(bridge)
    assert begun.acquire(timeout=5)

    def received(_: dict[str, str]) -> tuple[int, str]:
        listened.set()
        return 200, ""

    bridge.stream = received
    assert listened.wait(5)
    bridge.stream = lambda _: (404, "Not Found")
    assert begun.acquire(timeout=5)
    client.wait_for("notifications/tools/list_changed")


def test_a_resumed_answer_releases_its_connection_once(clients: Connect, bridges: Serve) -> None:
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

    bridge = bridges(answer)
    bridge.stream = stream
    client = clients(bridge)
    client.ask(call(1))
    assert "result" in client.answer(1)
    client.ask(call(2))
    client.ask(call(3))
    assert "result" in client.answer(2)
    assert "result" in client.answer(3)


def test_several_signals_end_the_process_cleanly(bridges: Serve) -> None:
    deleting, finish = threading.Event(), threading.Event()

    def on_delete() -> None:
        deleting.set()
        finish.wait(5)

    bridge = bridges(answered)
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
def test_an_absent_editor_is_searched_for_less_often_until_the_next_request(
    clients: Connect, bridges: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pumps, "RETRY_SECONDS", 0.01)
    bridge = bridges(answered)
    client = clients(bridge)
    bridge.stop()
    client.wait_for(CHANGED)
    time.sleep(1.0)
    before = client.searches
    time.sleep(1.0)
    assert client.searches - before <= 3
    client.ask(call(1))
    client.answer(1)
    time.sleep(0.5)
    assert client.searches - before > 3


def test_a_cancel_is_sent_after_its_request(
    clients: Connect, bridges: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    received: list[str] = []
    come = threading.Semaphore(0)

    def answer(message: Any) -> tuple[int, str]:
        received.append(message["method"])
        come.release()
        return answered(message)

    bridge = bridges(answer)
    client = clients(bridge)
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
def test_a_client_stays_with_its_editor_while_that_can_be_reached(clients: Connect, bridges: Serve) -> None:
    """Although another one is nearer; a restart of the bridge is awaited."""
    own, other = bridges(answered), bridges(answered)
    client = clients(own)
    client._endpoint = nearer = BridgeClient(other.url, TOKEN)
    client.ask(CALL_STATUS)
    assert "is connected" in client.answer(9)["result"]["content"][0]["text"]
    own.stop()
    time.sleep(1)
    bridges(answered, TOKEN, own.server_port)
    client.ask(call(1))
    assert "result" in client.answer(1)
    assert "/mcp" not in [path for path, _ in other.received]
    nearer.close()


def test_requests_wait_for_an_editor_at_the_same_time(
    clients: Connect, bridges: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pumps, "RESTART_SECONDS", 0.5)
    bridge = bridges(answered)
    bridge.stream = lambda _: (404, "")
    client = clients(bridge)
    client.pump._find = lambda: Missing("it is starting", may_start=True)
    with client.pump._opening:  # all wait before the first one looks
        bridge.stop()
        for id_ in range(1, 9):
            client.ask(call(id_))
        time.sleep(0.3)
    begun = time.monotonic()
    for id_ in range(1, 9):
        client.answer(id_)
    assert time.monotonic() - begun < 2.5


def test_requests_wait_for_an_unresponsive_bridge_at_the_same_time(
    clients: Connect, bridges: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pumps, "OPEN_SECONDS", 0.5)
    silent, over = threading.Event(), threading.Event()

    def answer(message: Any) -> tuple[int, str]:
        if silent.is_set() and message["method"] == "initialize":
            over.wait(10)
        return (404, "Not Found") if silent.is_set() else answered(message)

    bridge = bridges(answer)
    client = clients(bridge)
    silent.set()
    begun = time.monotonic()
    for id_ in range(1, 9):
        client.ask(call(id_))
    for id_ in range(1, 9):
        client.answer(id_)
    assert time.monotonic() - begun < 2.5
    over.set()
