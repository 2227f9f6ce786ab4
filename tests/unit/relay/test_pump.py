"""The pump between a client's lines and a bridge: every request is answered, all lines are messages."""

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
"""In place of a status: the connection ends without an answer."""

Answer = Callable[[Any], tuple[int, str]]


class FakeBridge(ThreadingHTTPServer):
    """Answers as a test says; `received` has the headers and paths of all requests."""

    daemon_threads = True

    def __init__(self, token: str | None, answer: Answer, port: int = 0) -> None:
        self.received: list[tuple[str, dict[str, str]]] = []
        self.connections: list[socket.socket] = []
        self.token, self.answer = token, answer
        self.goodbye: Callable[[], Any] = lambda: None
        self.stream: Callable[[dict[str, str]], tuple[int, str]] = lambda _: (
            200,
            "",
        )  # one that ends at once
        super().__init__(("127.0.0.1", port), _Handler)
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/mcp"

    def end(self) -> None:
        """Listens no longer."""
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
            self.say(*self.server.stream(dict(self.headers)), "text/event-stream")
        elif self.server.token is None:
            self.say(404, "Not Found")
        else:
            proof = prove(self.server.token, self.server.server_port, nonce[0])
            self.say(200, json.dumps({"proof": proof}))

    def do_POST(self) -> None:
        self.server.received.append((self.path, dict(self.headers)))
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status, text = self.server.answer(body)
        if status == BROKEN:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self.say(status, text, "text/event-stream" if text.startswith("id:") else None)

    def do_DELETE(self) -> None:
        self.server.goodbye()
        self.say(200, "{}")

    def say(self, status: int, text: str, kind: str | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.send_header("Content-Type", kind or ("application/json" if text[:1] in "[{" else "text/plain"))
        self.send_header("Mcp-Session-Id", "s")
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: Any) -> None:
        pass


def answered(message: Any) -> tuple[int, str]:
    """As a bridge that is well."""
    if isinstance(message, dict) and "id" not in message:
        return 202, ""
    result = {"protocolVersion": "2025-11-25"} if message["method"] == "initialize" else {}
    return 200, json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result})


class Client:
    """What a client reads."""

    def __init__(self, url: str) -> None:
        self.lines: list[dict[str, Any]] = []
        self.looks = 0
        self._come = threading.Condition()
        self._endpoint = BridgeClient(url, TOKEN)
        self.pump = Pump(self._find, self._write)

    def _find(self) -> BridgeClient | Missing:
        self.looks += 1
        return self._endpoint if self._endpoint.is_ours() else Missing("nobody")

    def _write(self, line: bytes) -> None:
        with self._come:
            self.lines.append(json.loads(line))  # fails on what is no message
            self._come.notify_all()

    def ask(self, message: Any) -> None:
        self.pump.on_line(json.dumps(message).encode())

    def answer(self, id_: Any) -> dict[str, Any]:
        """The answer to a request, which comes once."""

        def found() -> list[dict[str, Any]]:
            return [line for line in self.lines if line.get("id") == id_ and "method" not in line]

        with self._come:
            assert self._come.wait_for(found, 5), f"{id_} is not answered: {self.lines}"
        (only,) = found()
        return only

    def hear(self, method: str, times: int = 1) -> None:
        """Waits for a notification."""

        def received() -> bool:
            return sum(line.get("method") == method for line in self.lines) >= times

        with self._come:
            assert self._come.wait_for(received, 10), f"{method} has not come: {self.lines}"


@pytest.fixture
def clients() -> Iterator[Callable[[str], Client]]:
    made: list[Client] = []

    def make(url: str) -> Client:
        made.append(Client(url))
        return made[-1]

    yield make
    for client in made:
        client.pump.close()


def call(id_: int) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "method": "tools/list"}


@pytest.mark.parametrize(
    ("status", "text"),
    [(404, "Not Found"), (401, '{"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": "no"}}')],
)
def test_a_refusal_is_an_answer(clients: Callable[[str], Client], status: int, text: str) -> None:
    """Also one that is no message, or names no request."""
    refuses = True
    bridge = FakeBridge(TOKEN, lambda message: (status, text) if refuses else answered(message))
    client = clients(bridge.url)
    client.ask(INITIALIZE)
    assert "result" in client.answer(0)
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
    bridge.end()


def test_a_request_is_repeated_where_nothing_is_changed_by_it(clients: Callable[[str], Client]) -> None:
    """After an end of the connection only then; while the bridge is ending, always."""
    fails: list[int] = []

    def answer(message: Any) -> tuple[int, str]:
        if message["method"] == "tools/call" and fails:
            return fails.pop(), ""
        return answered(message)

    bridge = FakeBridge(TOKEN, answer)
    client = clients(bridge.url)
    client.ask(INITIALIZE)
    assert "result" in client.answer(0)
    request = {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "x"}}
    fails += [503, 503]
    client.ask(request | {"id": 1})
    assert "result" in client.answer(1)
    fails += [BROKEN]
    client.ask(request | {"id": 2})
    assert "unknown" in client.answer(2)["error"]["message"]
    client.pump.repeats = True
    fails += [BROKEN]
    client.ask(request | {"id": 3})
    assert "result" in client.answer(3)
    bridge.end()


def test_a_bridge_that_does_not_answer(
    clients: Callable[[str], Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`initialize` has a deadline; the client may try again."""
    monkeypatch.setattr(pumps, "OPEN_SECONDS", 0.2, raising=False)
    go_on = threading.Event()

    def answer(message: Any) -> tuple[int, str]:
        if message.get("id") == 0:
            go_on.wait(20)
        return answered(message)

    bridge = FakeBridge(TOKEN, answer)
    client = clients(bridge.url)
    client.ask(INITIALIZE)
    assert client.answer(0)["result"]["capabilities"], "answered without the bridge"
    client.ask(INITIALIZE | {"id": 1})
    assert client.answer(1)["result"] == {"protocolVersion": "2025-11-25"}, "answered by the bridge"
    go_on.set()
    bridge.end()


def test_a_stranger_in_the_place_of_the_bridge(clients: Callable[[str], Client]) -> None:
    """It is sent no token, neither with a request nor by the stream that is opened again."""
    bridge = FakeBridge(TOKEN, answered)
    client = clients(bridge.url)
    client.ask(INITIALIZE)
    client.answer(0)
    bridge.end()
    foreign_server = FakeBridge(None, answered, bridge.server_port)
    client.ask(call(1) | {"method": "resources/read"})
    assert "nobody" in client.answer(1)["error"]["message"]
    before = len(foreign_server.received)
    deadline = time.monotonic() + 5
    while (
        len(foreign_server.received) < before + 2 and time.monotonic() < deadline
    ):  # the stream is opened again and again
        time.sleep(0.01)
    assert len(foreign_server.received) >= before + 2
    assert TOKEN not in str(foreign_server.received)
    foreign_server.end()


def test_a_fault_of_ours(clients: Callable[[str], Client], monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the answer, and the next request is served."""
    bridge = FakeBridge(TOKEN, answered)
    client = clients(bridge.url)
    client.ask(INITIALIZE)
    client.answer(0)
    with monkeypatch.context() as patch:
        patch.setattr(BridgeClient, "post", lambda *_, **__: 1 / 0)
        client.ask(call(1))
        assert "error" in client.answer(1)
        client.ask(INITIALIZE | {"id": 2})
        assert "error" in client.answer(2)
    client.ask(call(3))
    assert "result" in client.answer(3)
    bridge.end()


def test_a_session_that_is_forgotten(clients: Callable[[str], Client]) -> None:
    """It is begun anew also while the client asks for nothing: else it would hear of no change."""
    begun = threading.Semaphore(0)

    def answer(message: Any) -> tuple[int, str]:
        if isinstance(message, dict) and message.get("method") == "initialize":
            bridge.stream = lambda _: (200, "")
            begun.release()
        return answered(message)

    bridge = FakeBridge(TOKEN, answer)
    listened = threading.Event()
    client = clients(bridge.url)
    client.ask(INITIALIZE)
    client.answer(0)
    assert begun.acquire(timeout=5)

    def received(_: dict[str, str]) -> tuple[int, str]:
        listened.set()
        return 200, ""

    bridge.stream = received
    assert listened.wait(5)
    bridge.stream = lambda _: (404, "Not Found")
    assert begun.acquire(timeout=5)
    client.hear("notifications/tools/list_changed")
    bridge.end()


def test_a_list_is_asked_for_again_when_its_answer_breaks(clients: Callable[[str], Client]) -> None:
    """An editor that ends may break any answer; of a call of a tool it is unknown whether it ran."""
    broken = {1, 2}

    def answer(message: Any) -> tuple[int, str]:
        if message.get("id") in broken:
            broken.remove(message["id"])
            return BROKEN, ""
        return answered(message)

    bridge = FakeBridge(TOKEN, answer)
    client = clients(bridge.url)
    client.ask(INITIALIZE)
    client.answer(0)
    client.ask(call(1))
    assert "result" in client.answer(1)
    client.ask({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "x", "arguments": {}}})
    assert "unknown" in client.answer(2)["error"]["message"]
    bridge.end()


def test_an_answer_that_is_taken_up_again(clients: Callable[[str], Client]) -> None:
    """Its connections are let go of once: two requests that come next do not share one."""
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

    bridge = FakeBridge(TOKEN, answer)
    bridge.stream = stream
    client = clients(bridge.url)
    client.ask(INITIALIZE)
    client.answer(0)
    client.ask(call(1))
    assert "result" in client.answer(1)
    client.ask(call(2))
    client.ask(call(3))
    assert "result" in client.answer(2)
    assert "result" in client.answer(3)
    bridge.end()


def test_signals_at_the_end() -> None:
    """However many come, and whenever: it takes leave, and ends without a trace."""
    leaving, leave = threading.Event(), threading.Event()

    def goodbye() -> None:
        leaving.set()
        leave.wait(5)

    bridge = FakeBridge(TOKEN, answered)
    bridge.goodbye = goodbye
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
        assert leaving.wait(5)
        process.terminate()
        process.send_signal(signal.SIGINT)
        leave.set()
        assert (process.wait(5), process.stderr and process.stderr.read()) == (0, "")
    bridge.end()


def test_an_absent_editor_is_looked_for_less_and_less_often(
    clients: Callable[[str], Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request of the client makes it look soon again."""
    monkeypatch.setattr(pumps, "RETRY_SECONDS", 0.01)
    bridge = FakeBridge(TOKEN, answered)
    client = clients(bridge.url)
    client.ask(INITIALIZE)
    client.answer(0)
    bridge.end()
    client.hear(CHANGED)
    time.sleep(1.0)
    before = client.looks
    time.sleep(1.0)
    assert client.looks - before <= 3
    client.ask(call(1))
    client.answer(1)
    time.sleep(0.5)
    assert client.looks - before > 3


def test_a_cancel_is_sent_after_its_request(
    clients: Callable[[str], Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the bridge, which does not know the request yet, ignores it."""
    received: list[str] = []
    come = threading.Semaphore(0)

    def answer(message: Any) -> tuple[int, str]:
        received.append(message["method"])
        come.release()
        return answered(message)

    bridge = FakeBridge(TOKEN, answer)
    client = clients(bridge.url)
    client.ask(INITIALIZE)
    client.answer(0)
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
    bridge.end()


async def test_a_client_without_an_editor_is_promised_what_the_bridge_has() -> None:
    """It negotiates once, and keeps the result when an editor appears."""
    assert HANDSHAKE_PROTOCOL_VERSIONS == offline.VERSIONS
    async with served() as bridge:
        for version in (*offline.VERSIONS, "2026-07-28", "x"):
            client = {"name": "t", "version": "1"}
            params = {"protocolVersion": version, "capabilities": {}, "clientInfo": client}
            async with await bridge.post(bridge.message("initialize", params)) as response:
                online = (await response.json())["result"]
            assert {**offline.initialize(params), "instructions": None} == {**online, "instructions": None}


def test_a_client_stays_with_its_editor_while_that_can_be_reached(clients: Callable[[str], Client]) -> None:
    """Although another one is nearer by now; a restart of the bridge is waited for as well."""
    own, other = FakeBridge(TOKEN, answered), FakeBridge(TOKEN, answered)
    client = clients(own.url)
    client.ask(INITIALIZE)
    client.answer(0)
    client._endpoint = nearer = BridgeClient(other.url, TOKEN)
    client.ask(CALL_STATUS)
    assert "is connected" in client.answer(9)["result"]["content"][0]["text"]
    own.end()
    time.sleep(1)
    again = FakeBridge(TOKEN, answered, own.server_port)
    client.ask(call(1))
    assert "result" in client.answer(1)
    assert "/mcp" not in [path for path, _ in other.received]
    nearer.close()
    for bridge in (again, other):
        bridge.end()


def test_requests_wait_together_for_an_editor(
    clients: Callable[[str], Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that are sent at once do not wait for the same editor one after the other."""
    monkeypatch.setattr(pumps, "RESTART_SECONDS", 0.5)
    bridge = FakeBridge(TOKEN, answered)
    bridge.stream = lambda _: (404, "")
    client = clients(bridge.url)
    client.ask(INITIALIZE)
    client.answer(0)
    client.pump._find = lambda: Missing("it is starting", may_start=True)
    with client.pump._opening:  # all wait before the first one looks
        bridge.end()
        for id_ in range(1, 9):
            client.ask(call(id_))
        time.sleep(0.3)
    begun = time.monotonic()
    for id_ in range(1, 9):
        client.answer(id_)
    assert time.monotonic() - begun < 2.5


def test_requests_wait_together_for_a_bridge_that_does_not_answer(
    clients: Callable[[str], Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has forgotten the session and does not open another one."""
    monkeypatch.setattr(pumps, "OPEN_SECONDS", 0.5)
    silent, over = threading.Event(), threading.Event()

    def answer(message: Any) -> tuple[int, str]:
        if silent.is_set() and message["method"] == "initialize":
            over.wait(10)
        return (404, "Not Found") if silent.is_set() else answered(message)

    bridge = FakeBridge(TOKEN, answer)
    client = clients(bridge.url)
    client.ask(INITIALIZE)
    client.answer(0)
    silent.set()
    begun = time.monotonic()
    for id_ in range(1, 9):
        client.ask(call(id_))
    for id_ in range(1, 9):
        client.answer(id_)
    assert time.monotonic() - begun < 2.5
    over.set()
    bridge.end()
