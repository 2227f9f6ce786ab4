"""A bridge whose answers the test sets, and a client of the pump."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from mcp_tools_nvim.instances.proof import prove
from mcp_tools_nvim.relay.bridge_client import BridgeClient, Missing
from mcp_tools_nvim.relay.pump import Pump

TOKEN = "a-token-of-this-test"
INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}}

BROKEN = 0
"""Instead of a status: the connection ends without an answer."""

Answer = Callable[[Any], tuple[int, str]]
Stream = Callable[[dict[str, str]], tuple[int, str]]
Serve = Callable[..., "FakeBridge"]
Connect = Callable[..., "Client"]


class FakeBridge(ThreadingHTTPServer):
    """A server whose answers the test sets; `received` has the paths and headers of all requests."""

    daemon_threads = True

    def __init__(self, token: str | None, answer: Answer, port: int = 0) -> None:
        self.received: list[tuple[str, dict[str, str]]] = []
        self.connections: list[socket.socket] = []
        self.token, self.answer = token, answer
        self.on_delete: Callable[[], Any] = lambda: None
        self.stream: Stream = lambda _: (200, "")  # ends at once
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

    def __init__(self, bridge: FakeBridge) -> None:
        self.bridge = bridge
        self.lines: list[dict[str, Any]] = []
        self.searches = 0
        self._changed = threading.Condition()
        self._endpoint = BridgeClient(bridge.url, TOKEN)
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
        (only,) = self._wait_for(lambda line: line.get("id") == id_ and "method" not in line, id_)
        return only

    def close(self) -> None:
        self.pump.close()
        self._endpoint.close()

    def wait_for(self, method: str) -> None:
        """Waits for a notification."""
        self._wait_for(lambda line: line.get("method") == method, method)

    def _wait_for(self, is_wanted: Callable[[dict[str, Any]], bool], what: Any) -> list[dict[str, Any]]:
        with self._changed:
            found = self._changed.wait_for(lambda: [*filter(is_wanted, self.lines)], 10)
            assert found, f"no {what}: {self.lines}"
            return found
