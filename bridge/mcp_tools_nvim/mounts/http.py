"""The connection to a mounted server at a URL.

The headers are sent to that origin only: the SDK follows no redirect to another.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
from collections.abc import AsyncIterator, Callable
from typing import Any
from urllib.parse import urlsplit

import httpx2
from mcp.client.streamable_http import streamable_http_client

from .child_process import ENVELOPE, ESCAPED
from .mount import Mount

logger = logging.getLogger(__name__)

CONNECT_TIMEOUT = 10.0
"""Seconds to connect and to send a request."""
STREAM_INTERVAL = 1.0
"""Minimum seconds between two openings of the event stream."""
UNUSED_ANSWER_TIMEOUT = 5.0
"""Seconds for an answer that is not used."""
_NOTIFICATION = re.compile(rb'"method"\s*:\s*"notifications/')
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Remote:
    """One connection to a server.

    Attributes:
        pid: always None; see `Child`.
        reason: why the connection failed, as far as HTTP reports it.
        limit: maximum bytes of an answer.
    """

    def __init__(self, mount: Mount, lost: Callable[[], None]) -> None:
        self._mount = mount
        self._lost = lost
        self.limit = mount.limit * ESCAPED + ENVELOPE
        self.pid: int | None = None
        self.reason = ""
        self._stream_at = 0.0

    @contextlib.asynccontextmanager
    async def run(self) -> AsyncIterator[tuple[Any, Any]]:
        """Opens the connection, and closes it with the context."""
        host = urlsplit(self._mount.url).hostname or ""
        client = httpx2.AsyncClient(
            headers={"Accept-Encoding": "identity", **self._mount.headers},  # see `_check_response`
            timeout=httpx2.Timeout(CONNECT_TIMEOUT, read=None),  # deadlines are those of the calls
            trust_env=host not in _LOOPBACK,
            event_hooks={"request": [self._limit_streams, _set_timeout], "response": [self._check_response]},
        )
        async with (
            client,
            streamable_http_client(
                self._mount.url, http_client=client, max_sse_event_size=self.limit
            ) as streams,
        ):
            yield streams

    async def _limit_streams(self, request: httpx2.Request) -> None:
        """Delays the reopening of a stream that ends immediately."""
        if request.method == "GET":
            loop = asyncio.get_running_loop()
            self._stream_at = max(loop.time(), self._stream_at + STREAM_INTERVAL)
            await asyncio.sleep(self._stream_at - loop.time())

    async def _check_response(self, response: httpx2.Response) -> None:
        """Records the reason of a refusal, and limits the size of the answer."""
        status = response.status_code
        if status == 404 and "mcp-session-id" in response.request.headers:
            self.reason = "the server does not know our session any more"
            self._lost()
        elif status >= 400 and response.request.method == "POST":
            self.reason = f"HTTP {status} {response.reason_phrase}".rstrip()
            if status in (401, 403):
                self.reason += ": check the credentials (headers of the mount)"
        elif status < 400 and response.request.method == "POST":
            self.reason = ""
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            self.reason = "the server sent a compressed answer, which was not requested"
            raise httpx2.DecodingError(self.reason)
        if not response.headers.get("content-type", "").lower().startswith("text/event-stream"):
            stream = response.stream
            assert isinstance(stream, httpx2.AsyncByteStream)  # noqa: S101 (the client is async)
            response.stream = _Bounded(stream, self)


async def _set_timeout(request: httpx2.Request) -> None:
    """Sets a timeout for answers that are not used: a server may never send them."""
    if request.method == "DELETE" or (request.method == "POST" and _is_notification(request.content)):
        request.extensions["timeout"] = {
            **request.extensions.get("timeout", {}),
            "read": UNUSED_ANSWER_TIMEOUT,
        }


def _is_notification(content: bytes) -> bool:
    if _NOTIFICATION.search(content) is None:
        return False  # the usual case, without parsing
    message = json.loads(content)
    return isinstance(message, dict) and "method" in message and "id" not in message


class _Bounded(httpx2.AsyncByteStream):
    """A body that raises an error when it is too large."""

    def __init__(self, stream: httpx2.AsyncByteStream, connection: Remote) -> None:
        self._stream = stream
        self._connection = connection

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size, limit = 0, self._connection.limit
        async for chunk in self._stream:
            size += len(chunk)
            if size > limit:
                reason = f"the answer is larger than {limit} bytes (option limits.tool_result)"
                self._connection.reason = reason
                raise httpx2.DecodingError(reason)
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
