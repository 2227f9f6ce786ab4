"""A server that listens at a URL: the connection to it.

The headers go to that origin alone: the SDK follows no redirect to another.
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

CONNECT = 10.0
"""Seconds to reach it, and to send it something."""
STREAMS = 1.0
"""Seconds between two openings of a stream, whatever the server says."""
UNUSED_ANSWER = 5.0
"""Seconds for an answer of no interest."""
_NOTIFICATION = re.compile(rb'"method"\s*:\s*"notifications/')
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Remote:
    """One connection to a server.

    Attributes:
        pid: None; it is no child of ours.
        reason: why it is no more, as far as HTTP says so.
    """

    def __init__(self, mount: Mount, lost: Callable[[], None]) -> None:
        self._mount = mount
        self._lost = lost
        self._limit = mount.limit * ESCAPED + ENVELOPE
        self.pid: int | None = None
        self.reason = ""
        self._stream_at = 0.0

    @contextlib.asynccontextmanager
    async def run(self) -> AsyncIterator[tuple[Any, Any]]:
        """Opens it, and takes leave with the context."""
        host = urlsplit(self._mount.url).hostname or ""
        client = httpx2.AsyncClient(
            headers={"Accept-Encoding": "identity", **self._mount.headers},  # see `_heard`
            timeout=httpx2.Timeout(CONNECT, read=None),  # deadlines are those of the calls
            trust_env=host not in _LOOPBACK,
            event_hooks={"request": [self._pace, _bound], "response": [self._heard]},
        )
        async with (
            client,
            streamable_http_client(
                self._mount.url, http_client=client, max_sse_event_size=self._limit
            ) as streams,
        ):
            yield streams

    async def _pace(self, request: httpx2.Request) -> None:
        """Waits, lest a stream that ends at once is opened on and on."""
        if request.method == "GET":
            loop = asyncio.get_running_loop()
            self._stream_at = max(loop.time(), self._stream_at + STREAMS)
            await asyncio.sleep(self._stream_at - loop.time())

    async def _heard(self, response: httpx2.Response) -> None:
        """Notes what a refusal says, and refuses what would never end."""
        status = response.status_code
        if status == 404 and "mcp-session-id" in response.request.headers:
            self.reason = "it has forgotten our session"
            self._lost()
        elif status >= 400 and response.request.method == "POST":
            self.reason = f"HTTP {status} {response.reason_phrase}".rstrip()
            if status in (401, 403):
                self.reason += ": it wants other credentials (headers of the mount)"
        elif status < 400 and response.request.method == "POST":
            self.reason = ""
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            self.reason = "its answer is compressed, although none such was asked for"
            raise httpx2.DecodingError(self.reason)
        if not response.headers.get("content-type", "").lower().startswith("text/event-stream"):
            stream = response.stream
            assert isinstance(stream, httpx2.AsyncByteStream)  # noqa: S101 (the client is an async one)
            response.stream = _Bounded(stream, self._limit, self._too_much)

    def _too_much(self) -> None:
        self.reason = f"an answer of more than {self._limit} bytes (option limits.tool_result)"
        raise httpx2.DecodingError(self.reason)


async def _bound(request: httpx2.Request) -> None:
    """Nobody waits for the answer to a notification or to the last word, and a server may give none."""
    if request.method == "DELETE" or (request.method == "POST" and _is_notification(request.content)):
        request.extensions["timeout"] = {
            **request.extensions.get("timeout", {}),
            "read": UNUSED_ANSWER,
        }


def _is_notification(content: bytes) -> bool:
    if _NOTIFICATION.search(content) is None:
        return False  # nearly always, and without parsing
    message = json.loads(content)
    return isinstance(message, dict) and "method" in message and "id" not in message


class _Bounded(httpx2.AsyncByteStream):
    """A body that ends with an error when there is too much of it."""

    def __init__(self, stream: httpx2.AsyncByteStream, limit: int, refuse: Callable[[], None]) -> None:
        self._stream = stream
        self._limit = limit
        self._refuse = refuse

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > self._limit:
                self._refuse()
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
