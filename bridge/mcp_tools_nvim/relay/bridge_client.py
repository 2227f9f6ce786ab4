"""A thread-safe HTTP/1.1 client of the bridge, on the standard library.

Connections are reused. A message is sent once: one that may have arrived is never sent again.
"""

from __future__ import annotations

import http.client
import os
import secrets
import select
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from ..instances.files import table_of
from ..instances.proof import proves

SESSION = "Mcp-Session-Id"
VERSION = "MCP-Protocol-Version"
RELAY_SESSION = "Mcp-Tools-Session"
"""The session to which a request of the stateless era belongs."""

CONNECT_SECONDS = 2.0
"""Time to connect, to this machine or through a tunnel."""

PROOF_SECONDS = 1.0
MAX_IDLE = 16
"""Maximum idle connections; agents make fewer concurrent calls."""

MAX_HEALTH = 64 * 1024
OK = 200


class UnreachableError(OSError):
    """The bridge does not answer; nothing was sent."""


class BrokenError(OSError):
    """The connection broke before the end of the answer; whether the message was read is unknown."""


class Missing(NamedTuple):
    """No bridge was found.

    Attributes:
        text: why, and what to do.
        may_start: Neovim is running, and its bridge may be about to start.
    """

    text: str
    may_start: bool = False


CLAUDE = "CLAUDE_CODE_SESSION_ID"
"""Environment variable of the servers that Claude Code starts."""


class Flight:
    """A message on its way: whether it was sent, and the way to end its HTTP request.

    Attributes:
        headers: headers of a request of the stateless era; None in a session.
        sent: set once the bridge was sent the message.
        cancelled: its client wants no answer any more.
    """

    def __init__(self, headers: dict[str, str] | None = None) -> None:
        self.headers = headers
        self.sent = threading.Event()
        self.cancelled = False
        self._lock = threading.Lock()
        self._sock: socket.socket | None = None

    def on_sent(self, sock: socket.socket) -> None:
        """Called once the message was sent."""
        with self._lock:
            self._sock = sock
            if self.cancelled:
                _shut(sock)
        self.sent.set()

    def on_end(self) -> None:
        """Called when the connection is free for other messages."""
        with self._lock:
            self._sock = None

    def cancel(self) -> None:
        """Closes the connection, which cancels a request of the stateless era."""
        with self._lock:
            self.cancelled = True
            _shut(self._sock)


class BridgeClient:
    """A client of one bridge.

    Args:
        url: the URL of the bridge, which ends in /mcp.
        token: bearer token; None = the bridge requires none.
        headers: additional headers of every request; Authorization replaces the token.
    """

    def __init__(self, url: str, token: str | None, headers: Mapping[str, str] | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme != "http" or parts.hostname is None:
            raise ValueError(f"{url} is not the URL of a bridge: expected http://HOST:PORT/mcp")
        self.url = url
        self.token = token
        self.host, self.port = parts.hostname, parts.port or 80
        self._path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._headers = {"Accept": "application/json, text/event-stream", **(headers or {})}
        if CLAUDE in os.environ:
            self._headers["User-Agent"] = "claude-code/stdio"
        if token is not None:
            self._headers.setdefault("Authorization", f"Bearer {token}")
        self._idle: list[http.client.HTTPConnection] = []
        self._closed = False
        self._lock = threading.Lock()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BridgeClient) and (self.url, self.token) == (other.url, other.token)

    __hash__ = None  # type: ignore[assignment]

    def post(
        self,
        body: bytes,
        headers: Mapping[str, str] | None = None,
        seconds: float | None = None,
        flight: Flight | None = None,
    ) -> HttpReply:
        """Sends a message and waits for the answer.

        Args:
            body: the message.
            headers: additional headers.
            seconds: timeout of the answer; None = no limit.
            flight: is notified of the progress.

        Raises:
            UnreachableError: nothing was sent.
            BrokenError: whether the message was read is unknown.
        """
        headers = {"Content-Type": "application/json", **(headers or {})}
        return self._request("POST", body, headers, seconds, flight)

    def get(self, headers: Mapping[str, str] | None = None) -> HttpReply:
        """Opens a stream; raises like `post`."""
        return self._request("GET", None, headers)

    def delete(self, headers: Mapping[str, str], seconds: float) -> None:
        """Ends a session; ignores errors."""
        try:
            with self._request("DELETE", None, headers, seconds) as reply:
                reply.text()
        except OSError:
            pass

    def is_ours(self) -> bool:
        """Whether the process at the port proves to know the token."""
        if self.token is None:
            return True
        try:
            self.keep(self._connect())
        except UnreachableError:
            return False
        return True

    def health(self) -> dict[str, Any] | None:
        """Returns the bridge's status for the holder of the token; None if it does not answer."""
        try:
            connection = self._connect()
        except UnreachableError:
            return None
        try:
            return _health(connection, "", {"Authorization": f"Bearer {self.token}"})
        finally:
            connection.close()

    def keep(self, connection: http.client.HTTPConnection) -> None:
        """Keeps a connection whose answer was read completely, for reuse."""
        with self._lock:
            if len(self._idle) < MAX_IDLE and not self._closed:
                self._idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        """Closes the idle connections now, and each other one once its answer was read."""
        with self._lock:
            idle, self._idle = self._idle, []
            self._closed = True
        for connection in idle:
            connection.close()

    def _request(
        self,
        method: str,
        body: bytes | None,
        headers: Mapping[str, str] | None,
        seconds: float | None = None,
        flight: Flight | None = None,
    ) -> HttpReply:
        connection = self._connection()
        try:
            connection.sock.settimeout(seconds)
            connection.request(method, self._path, body, {**self._headers, **(headers or {})})
            if flight is not None:
                flight.on_sent(connection.sock)
            return HttpReply(self, connection, connection.getresponse(), flight)
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise BrokenError(f"the connection broke: {error}") from error

    def _connection(self) -> http.client.HTTPConnection:
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                break
            # An idle connection with something to read was closed by the other side.
            if connection.sock is not None and not select.select([connection.sock], [], [], 0)[0]:
                return connection
            connection.close()
        return self._connect()

    def _connect(self) -> http.client.HTTPConnection:
        """Opens a connection; the other side must prove to know the token before it is sent."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=CONNECT_SECONDS)
        connection.auto_open = 0  # a closed connection must not be opened again without a proof
        try:
            connection.connect()
        except OSError as error:
            raise UnreachableError(f"{self.url} does not answer: {error.strerror or error}") from error
        if self.token is not None:
            nonce = secrets.token_hex(16)
            proof = (_health(connection, f"?nonce={nonce}", {}) or {}).get("proof")
            if not isinstance(proof, str) or not proves(proof, self.port, nonce, [self.token]):
                connection.close()
                raise UnreachableError(f"{self.url} does not answer: another process listens there")
        return connection


def _health(
    connection: http.client.HTTPConnection, query: str, headers: dict[str, str]
) -> dict[str, Any] | None:
    """Returns the status from the other side of a new connection; None = the connection cannot be used.

    A foreign process may send it byte by byte, so the whole answer has a deadline.
    """
    until = time.monotonic() + PROOF_SECONDS
    clock = threading.Timer(PROOF_SECONDS, _shut, (connection.sock,))
    clock.daemon = True
    clock.start()
    try:
        connection.sock.settimeout(PROOF_SECONDS)
        connection.request("GET", f"/health{query}", headers=headers)
        response = connection.getresponse()
        text = response.read(MAX_HEALTH)
    except (OSError, http.client.HTTPException):
        return None
    finally:
        clock.cancel()
    in_time = time.monotonic() < until
    reusable = in_time and response.status == OK and response.isclosed() and not response.will_close
    return table_of(text) if reusable else None


def _shut(sock: socket.socket | None) -> None:
    if sock is not None:
        try:
            sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # already closed


class HttpReply:
    """One HTTP answer.

    Attributes:
        status: HTTP status.
        is_stream: whether the answer is an event stream.
        last_event: id of the last event with one.
    """

    def __init__(
        self,
        endpoint: BridgeClient,
        connection: http.client.HTTPConnection,
        response: http.client.HTTPResponse,
        flight: Flight | None = None,
    ) -> None:
        self._client = endpoint
        self._connection = connection
        self._response = response
        self._flight = flight
        self.status = response.status
        self.is_stream = response.headers.get_content_type() == "text/event-stream"
        self.last_event: str | None = None

    def __enter__(self) -> HttpReply:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._flight is not None:
            self._flight.on_end()
        if kind is None and self._response.isclosed() and not self._response.will_close:
            self._client.keep(self._connection)
        else:
            self._connection.close()

    def header(self, name: str) -> str | None:
        """Returns a header."""
        return self._response.headers.get(name)

    def abort(self) -> None:
        """Closes the connection from another thread; the reader gets a `BrokenError`."""
        _shut(self._connection.sock)

    def text(self) -> bytes:
        """Returns the whole body; raises BrokenError."""
        try:
            return self._response.read()
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise BrokenError(f"the answer broke off: {error}") from error

    def messages(self) -> Iterator[bytes]:
        """Yields the messages, each as one line of JSON text; raises BrokenError."""
        if not self.is_stream:
            if body := self.text().strip():
                yield body.replace(b"\n", b" ")
            return
        data: list[bytes] = []
        while line := self._line():
            name, _, value = line.rstrip(b"\r\n").partition(b":")
            if name == b"data":
                data.append(value.removeprefix(b" "))
            elif name == b"id":
                self.last_event = value.strip().decode("latin-1")
            elif not name and not value and data:
                message, data = b" ".join(data), []
                if message:
                    yield message

    def _line(self) -> bytes:
        try:
            return self._response.readline()
        except (OSError, http.client.HTTPException, ValueError, AttributeError) as error:
            raise BrokenError(f"the stream broke off: {error}") from error


@dataclass
class RelaySession:
    """The client's session with one bridge.

    Attributes:
        version: negotiated protocol version; None if unknown.
    """

    bridge: BridgeClient
    id: str | None
    version: str | None
    stream: HttpReply | None = None

    @property
    def headers(self) -> dict[str, str]:
        """Headers of every request in the session."""
        known = {SESSION: self.id, VERSION: self.version}
        return {name: value for name, value in known.items() if value is not None}

    def headers_of(self, flight: Flight) -> dict[str, str]:
        """Returns the headers of a request."""
        if flight.headers is None:
            return self.headers
        return {RELAY_SESSION: self.id or "", **flight.headers}

    def abort_stream(self) -> None:
        """Closes the open stream, if there is one."""
        stream = self.stream
        if stream is not None:
            stream.abort()
