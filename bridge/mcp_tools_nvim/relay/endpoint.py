"""The bridge's endpoint as a client of few needs sees it: HTTP/1.1 on loopback, by the standard library.

Receives: messages, from any thread. Sends: each as one request; what comes back, message by message.
Does not know about: sessions, what a message means.

Connections are kept and used again. A message goes out once: one that may have arrived is never sent anew.
"""

from __future__ import annotations

import http.client
import secrets
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from ..instances.files import table_of
from ..instances.proof import proves

SESSION = "Mcp-Session-Id"
VERSION = "MCP-Protocol-Version"

CONNECT_SECONDS = 2.0
"""To a port of this machine, or of one end of a tunnel."""

PROOF_SECONDS = 1.0
KEPT = 16
"""Idle connections; more calls at a time than agents make."""

MAX_HEALTH = 64 * 1024
OK = 200


class UnreachableError(OSError):
    """Nobody answers there; nothing was sent."""


class BrokenError(OSError):
    """The connection ended before the answer did; whether the message was read is unknown."""


class Missing(NamedTuple):
    """There is no bridge to talk to.

    Attributes:
        text: why, and what to do.
        soon: an editor is there, and its bridge may be about to start.
    """

    text: str
    soon: bool = False


class Endpoint:
    """See the head of this file.

    Args:
        url: ends in /mcp.
        token: for every request; None = none is asked for.
        headers: for every request, too.
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
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        self._idle: list[http.client.HTTPConnection] = []
        self._lock = threading.Lock()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Endpoint) and (self.url, self.token) == (other.url, other.token)

    __hash__ = None  # type: ignore[assignment]

    def post(
        self,
        body: bytes,
        headers: Mapping[str, str] | None = None,
        seconds: float | None = None,
        sent: Callable[[], None] | None = None,
    ) -> Reply:
        """Sends a message; waits for the answer for `seconds`, or as long as it takes.

        Args:
            body: the message.
            headers: beside those of every request.
            seconds: for the answer.
            sent: called once the message was sent.

        Raises:
            UnreachableError: nothing was sent.
            BrokenError: see there.
        """
        headers = {"Content-Type": "application/json", **(headers or {})}
        return self._request("POST", body, headers, seconds, sent)

    def get(self, headers: Mapping[str, str] | None = None) -> Reply:
        """Opens a stream; raises like `post`."""
        return self._request("GET", None, headers)

    def delete(self, headers: Mapping[str, str], seconds: float) -> None:
        """Ends a session; says nothing of what came of it."""
        try:
            with self._request("DELETE", None, headers, seconds) as reply:
                reply.text()
        except OSError:
            pass

    def is_ours(self) -> bool:
        """Whether who serves that port knows the token: it is sent to nobody else."""
        if self.token is None:
            return True
        try:
            self.keep(self._connect())
        except UnreachableError:
            return False
        return True

    def health(self) -> dict[str, Any] | None:
        """What the bridge says of itself to who has the token; None = it does not."""
        try:
            connection = self._connect()
        except UnreachableError:
            return None
        try:
            return _health(connection, "", {"Authorization": f"Bearer {self.token}"})
        finally:
            connection.close()

    def keep(self, connection: http.client.HTTPConnection) -> None:
        """Its answer was read to the end."""
        with self._lock:
            if len(self._idle) < KEPT:
                self._idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        """Lets go of all that is idle."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _request(
        self,
        method: str,
        body: bytes | None,
        headers: Mapping[str, str] | None,
        seconds: float | None = None,
        sent: Callable[[], None] | None = None,
    ) -> Reply:
        connection = self._connection()
        try:
            connection.sock.settimeout(seconds)
            connection.request(method, self._path, body, {**self._headers, **(headers or {})})
            if sent is not None:
                sent()
            return Reply(self, connection, connection.getresponse())
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise BrokenError(f"the connection broke: {error}") from error

    def _connection(self) -> http.client.HTTPConnection:
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                break
            # The other end has closed it if there is something to be read.
            if connection.sock is not None and not select.select([connection.sock], [], [], 0)[0]:
                return connection
            connection.close()
        return self._connect()

    def _connect(self) -> http.client.HTTPConnection:
        """A new connection. At each, who listens there proves to know the token before it is sent."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=CONNECT_SECONDS)
        connection.auto_open = 0  # what was closed is not opened again without a proof
        try:
            connection.connect()
        except OSError as error:
            raise UnreachableError(f"{self.url} does not answer: {error.strerror or error}") from error
        if self.token is not None:
            nonce = secrets.token_hex(16)
            proof = (_health(connection, f"?nonce={nonce}", {}) or {}).get("proof")
            if not isinstance(proof, str) or not proves(proof, self.port, nonce, [self.token]):
                connection.close()
                raise UnreachableError(f"{self.url} does not answer: another program listens there")
        return connection


def _health(
    connection: http.client.HTTPConnection, query: str, headers: dict[str, str]
) -> dict[str, Any] | None:
    """What the other side of a new connection says of itself; it can be used again, unless None.

    A stranger may say it byte by byte, so that no wait for the next one is too long: all of it has a time.
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
            pass  # it has ended already


class Reply:
    """One answer.

    Attributes:
        status: of HTTP.
        is_stream: whether its messages are events.
        last_event: id of the last event that had one.
    """

    def __init__(
        self, endpoint: Endpoint, connection: http.client.HTTPConnection, response: http.client.HTTPResponse
    ) -> None:
        self._endpoint = endpoint
        self._connection = connection
        self._response = response
        self.status = response.status
        self.is_stream = response.headers.get_content_type() == "text/event-stream"
        self.last_event: str | None = None

    def __enter__(self) -> Reply:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self._response.isclosed() and not self._response.will_close:
            self._endpoint.keep(self._connection)
        else:
            self._connection.close()

    def header(self, name: str) -> str | None:
        """One of its head."""
        return self._response.headers.get(name)

    def abort(self) -> None:
        """Ends it from another thread: who reads gets a `BrokenError`."""
        _shut(self._connection.sock)

    def text(self) -> bytes:
        """All of it, read to the end; raises BrokenError."""
        try:
            return self._response.read()
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise BrokenError(f"the answer broke off: {error}") from error

    def messages(self) -> Iterator[bytes]:
        """What it holds, each as one line of JSON text; raises BrokenError."""
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
