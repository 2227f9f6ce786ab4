"""A language server on stdin and stdout, whose requests the language servers of the editor answer.

Each request becomes one call of the editor's tool `lsp_request`, so the pump of `stdio` carries it; the tool
decides which methods are served. Texts of documents are ignored: the editor compares its buffer with the
file. An opened or changed document gets its diagnostics published.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from .. import __version__
from .offline import VERSIONS
from .pump import FindBridge, Pump
from .serve import end_on_signal

TOOL = "lsp_request"

MAX_BODY = 64 * 1024 * 1024
"""Maximum bytes of a message."""

MAX_HEADER = 4096
"""Maximum bytes of a line of a message's header."""

BLOCKED_SECONDS = 30.0
"""Time in which a request is repeated while the editor is blocked, such as by the start of a server."""

EXIT_SECONDS = 2.0
"""Time after `shutdown` in which the client sends `exit`; Claude Code never does."""

INITIALIZE = 0
"""Id of the request that opens the session with the bridge; calls have higher ones."""

PARSE_ERROR, INVALID_REQUEST = -32700, -32600
NOT_INITIALIZED, CANCELLED, FAILED = -32002, -32800, -32803
BLOCKED = 1
"""Not an error of the protocol: the editor did not start the call, and will not."""
ERROR_CODES = {
    "editor_blocked": BLOCKED,
    "capability_missing": -32601,
    "validation_error": -32602,
    "cancelled": CANCELLED,
}
"""Error code of the editor → of the protocol; FAILED for all others."""

WARNING = 2
"""Type of a logged message."""

DIAGNOSTIC, SYMBOL = "textDocument/diagnostic", "workspace/symbol"

CAPABILITIES: dict[str, Any] = {
    "positionEncoding": "utf-16",
    "textDocumentSync": {"openClose": True, "change": 1},
    "definitionProvider": True,
    "referencesProvider": True,
    "hoverProvider": True,
    "implementationProvider": True,
    "documentSymbolProvider": True,
    "workspaceSymbolProvider": True,
    "callHierarchyProvider": True,
    "renameProvider": {"prepareProvider": True},  # refused, but the refusal names the tool to use
    "diagnosticProvider": {"interFileDependencies": True, "workspaceDiagnostics": False},
}
"""What a client can use. It does not depend on the editor, which may start later, or restart."""


class EndOfMessagesError(Exception):
    """The stream has ended, or what follows is not a message."""


@dataclass
class Asked:
    """A call of the editor that is not answered yet.

    Attributes:
        arguments: of the call.
        id: id of the client's request; None = diagnostics to publish.
        uri: of the document whose diagnostics are published.
        version: of that document.
        until: when it is no longer repeated.
    """

    arguments: dict[str, Any]
    id: Any = None
    uri: str = ""
    version: Any = None
    until: float = field(default_factory=lambda: time.monotonic() + BLOCKED_SECONDS)


class LanguageServer:
    """Serves one client.

    Args:
        find: finds the bridge.
        write: writes the bytes of a message to the client; called from any thread, never concurrently.
        end: ends the process of a client that sends no `exit`.

    Attributes:
        is_shut_down: the client has sent `shutdown`.
    """

    def __init__(self, find: FindBridge, write: Callable[[bytes], None], end: Callable[[], None]) -> None:
        self._end = end
        self.pump = Pump(find, self._on_line, repeats=True)
        self._write = write
        self._writing = threading.Lock()
        self._lock = threading.Lock()  # of the attributes below
        self._ids = itertools.count(INITIALIZE + 1)
        self._asked: dict[int, Asked] = {}
        self._latest = ""
        self._initialize: Any = None
        self._is_open = self.is_shut_down = False

    def on_body(self, body: bytes) -> bool:
        """Handles a message of the client; returns whether the client may send more."""
        try:
            message = json.loads(body, parse_constant=_refuse)
        except (ValueError, RecursionError):
            self._fail(None, PARSE_ERROR, "Parse error: the body must be one JSON-RPC message")
            return True
        method = message.get("method") if isinstance(message, dict) else None
        if not isinstance(method, str):
            return True  # an answer, though nothing was asked
        params = message.get("params")
        if not isinstance(params, dict):
            params = {}
        if "id" in message:
            self._on_request(message["id"], method, params)
        else:
            self._on_notification(method, params)
        return method != "exit"

    def _on_request(self, id_: Any, method: str, params: dict[str, Any]) -> None:
        if self.is_shut_down:
            self._fail(id_, INVALID_REQUEST, "the server is shut down")
        elif method == "initialize" and self._is_open:
            self._fail(id_, INVALID_REQUEST, "initialize was sent before")
        elif method == "initialize":
            self._is_open, self._initialize = True, id_
            given = params.get("clientInfo")
            given = given if isinstance(given, dict) else {}
            client = {"name": str(given.get("name") or "lsp"), "version": str(given.get("version") or "")}
            opening = {"protocolVersion": VERSIONS[-1], "capabilities": {}, "clientInfo": client}
            self._send({"id": INITIALIZE, "method": "initialize", "params": opening})
        elif not self._is_open:
            self._fail(id_, NOT_INITIALIZED, "send initialize first")
        elif method == "shutdown":
            self.is_shut_down = True
            self._answer(id_, b"null")
            timer = threading.Timer(EXIT_SECONDS, self._end)
            timer.daemon = True
            timer.start()
        else:
            arguments = {"method": method, "params": params}
            if method == SYMBOL and self._latest:
                arguments["near"] = self._latest
            self._ask(Asked(arguments, id_))

    def _on_notification(self, method: str, params: dict[str, Any]) -> None:
        document = params.get("textDocument")
        uri = document.get("uri") if isinstance(document, dict) else None
        if not self._is_open or self.is_shut_down:
            return
        if method == "initialized":
            self._send({"method": "notifications/initialized"})
        elif method == "$/cancelRequest":
            id_ = params.get("id")
            if self._cancel(lambda asked: not asked.uri and asked.id == id_):
                self._fail(id_, CANCELLED, "the request was cancelled")
        elif isinstance(uri, str) and isinstance(document, dict):
            if method in ("textDocument/didOpen", "textDocument/didChange", "textDocument/didClose"):
                self._cancel(lambda asked: asked.uri == uri)
            if method in ("textDocument/didOpen", "textDocument/didChange"):
                self._latest = uri
                arguments = {"method": DIAGNOSTIC, "params": {"textDocument": {"uri": uri}}}
                self._ask(Asked(arguments, uri=uri, version=document.get("version")))

    def _ask(self, asked: Asked) -> None:
        with self._lock:
            id_ = next(self._ids)
            self._asked[id_] = asked
        call = {"name": TOOL, "arguments": asked.arguments}
        self._send({"id": id_, "method": "tools/call", "params": call})

    def _cancel(self, is_meant: Callable[[Asked], bool]) -> bool:
        """Cancels calls, which are then not answered; returns whether there were any."""
        with self._lock:
            found = [id_ for id_, asked in self._asked.items() if is_meant(asked)]
            for id_ in found:
                del self._asked[id_]
        for id_ in found:
            self._send({"method": "notifications/cancelled", "params": {"requestId": id_}})
        return bool(found)

    def _send(self, message: dict[str, Any]) -> None:
        self.pump.on_line(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def _on_line(self, line: bytes) -> None:
        """Handles a line of the bridge. Only answers concern the client."""
        message = json.loads(line)
        id_ = message.get("id")
        if "method" in message or not isinstance(id_, int):
            return
        if id_ == INITIALIZE:
            info = {"name": "mcp-tools.nvim", "version": __version__}
            result = {"capabilities": CAPABILITIES, "serverInfo": info}
            self._answer(self._initialize, json.dumps(result).encode())
        with self._lock:
            asked = self._asked.pop(id_, None)
        if asked is not None:
            self._finish(asked, message)

    def _finish(self, asked: Asked, message: dict[str, Any]) -> None:
        """Passes on the answer to a call."""
        code, text = _outcome(message)
        if code == BLOCKED and time.monotonic() < asked.until:
            self._ask(asked)
        elif code is None and asked.uri:
            published = {"uri": asked.uri, "diagnostics": json.loads(text)["items"]}
            if isinstance(asked.version, int):
                published["version"] = asked.version
            self._notify("textDocument/publishDiagnostics", published)
        elif code is None:
            self._answer(asked.id, text.encode())
        elif asked.uri:  # an empty list would mean that there are no errors
            text = f"no diagnostics of {asked.uri}: {text}"
            self._notify("window/logMessage", {"type": WARNING, "message": text})
        else:
            self._fail(asked.id, FAILED if code == BLOCKED else code, text)

    def _answer(self, id_: Any, result: bytes) -> None:
        """Answers a request with the JSON text of its result, which may be large."""
        self._write_body(b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (json.dumps(id_).encode(), result))

    def _fail(self, id_: Any, code: int, text: str) -> None:
        error = {"code": code, "message": text}
        self._write_body(json.dumps({"jsonrpc": "2.0", "id": id_, "error": error}).encode())

    def _notify(self, method: str, params: dict[str, Any]) -> None:
        self._write_body(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode())

    def _write_body(self, body: bytes) -> None:
        with self._writing:
            self._write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _outcome(message: dict[str, Any]) -> tuple[int | None, str]:
    """Returns the text of a tool's result, or the error code and message."""
    if "error" in message:
        return FAILED, str(message["error"].get("message"))
    result = message["result"]
    text = "".join(block.get("text", "") for block in result.get("content", ()))
    if not result.get("isError"):
        return None, text
    details = result.get("structuredContent") or {}
    return ERROR_CODES.get(str(details.get("code")), FAILED), text.removeprefix("Error: ")


def read_body(stream: BinaryIO) -> bytes:
    """Returns the body of the next message.

    Raises:
        EndOfMessagesError: there is none.
    """
    length = None
    while (line := stream.readline(MAX_HEADER)).strip():
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            length = int(value) if value.strip().isdigit() else None
    if not line:
        raise EndOfMessagesError
    if length is None or length > MAX_BODY:
        raise EndOfMessagesError(f"a message must have a Content-Length of at most {MAX_BODY} bytes")
    body = stream.read(length)
    if len(body) < length:
        raise EndOfMessagesError
    return body


def serve(find: FindBridge) -> int:
    """Serves until `exit`, the end of stdin, a signal, or a while after `shutdown`; returns the exit code."""
    out = sys.stdout.buffer
    sys.stdout = sys.stderr  # output of other code must not come between the messages

    def end() -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    def write(data: bytes) -> None:
        try:
            out.write(data)
            out.flush()
        except (OSError, ValueError):
            end()  # the client has closed the pipe

    server = LanguageServer(find, write, end)
    end_on_signal(server.pump)
    try:
        while server.on_body(read_body(sys.stdin.buffer)):
            pass
        return 0 if server.is_shut_down else 1
    except EndOfMessagesError as error:
        sys.stderr.write(f"mcp-tools lsp: {error}\n" if error.args else "")
        return 1 if error.args else 0
    finally:
        server.pump.close()
