"""Reads bodies of requests, with limits of size and time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from aiohttp import web

from .. import jsonrpc
from .guards import refusal, too_large

if TYPE_CHECKING:
    from ..sessions.session import Session
    from ..values import Limits

BODY_SECONDS = 30.0
"""Time for a body; no client on this machine needs half a minute for 4 MiB."""

ANSWER_GROWTH = 2
"""Maximum growth of a file in a client's answer: a third in base64, usually less with JSON escapes."""


class Bodies:
    """Reads bodies. The answer of a client to a question may contain a file of the maximum size.

    Args:
        limits: limits of requests and resources.
        asked: returns the session of a request, if it waits for an answer of its client.
    """

    def __init__(self, limits: Limits, asked: Callable[[web.Request], Session | None]) -> None:
        self._limit = limits.request_body
        self._answer_limit = max(limits.request_body, ANSWER_GROWTH * limits.resource)
        self._asked = asked

    def refuse_larger(self, request: web.Request) -> web.Response | None:
        """Returns 413 for a declared length above `limits.request_body`, unless the body may be an answer."""
        session = self._asked(request)
        limit = self._limit if session is None else self._answer_limit
        return None if (request.content_length or 0) <= limit else self._too_large(session, limit)

    def ready(self, request: web.Request) -> bytes | None:
        """Returns the body if it came with the head, which is the usual case; else None."""
        content = request.content
        if not content.is_eof() or content.total_bytes > self._limit or content.exception() is not None:
            return None
        data = content.read_nowait()
        while not content.at_eof():
            data += content.read_nowait()
        return data

    async def read(self, request: web.Request) -> bytes | web.Response:
        """Returns the body, or the response to one that is too large, too slow or incomplete."""
        limit, session, length = self._limit, None, request.content_length
        if (length is None or length > limit) and (session := self._asked(request)) is not None:
            limit = self._answer_limit
            request = request.clone(client_max_size=limit)
        try:
            async with asyncio.timeout(BODY_SECONDS):
                return await request.read()
        except web.HTTPRequestEntityTooLarge:
            return self._too_large(session, limit)
        except TimeoutError:
            response = refusal(408, f"Request body took longer than {BODY_SECONDS:g} s")
        except (web.RequestPayloadError, ConnectionError):
            response = refusal(400, "Request body is incomplete", code=jsonrpc.PARSE_ERROR)
        response.force_close()
        return response

    @staticmethod
    def _too_large(session: Session | None, limit: int) -> web.Response:
        if session is not None:
            session.questions.lose(limit)
        return too_large(limit)
