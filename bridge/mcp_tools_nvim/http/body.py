"""The body of a request, within size and time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from aiohttp import web

from .. import jsonrpc
from .guards import refusal
from .guards.size import too_large

if TYPE_CHECKING:
    from ..sessions.session import Session
    from ..values import Limits

BODY_SECONDS = 30.0
"""4 MiB in half a minute is slower than any client on this machine is on purpose."""

ANSWER_GROWTH = 2
"""What a client's file grows to in its answer: by a third in base64, mostly by less with JSON's escapes."""


class Bodies:
    """Reads bodies. A client that was asked for something may answer with a file of the largest size.

    Args:
        limits: of requests, and of resources.
        asked: the session of a request, if it waits for an answer of its client.
    """

    def __init__(self, limits: Limits, asked: Callable[[web.Request], Session | None]) -> None:
        self._limit = limits.request_body
        self._answer_limit = max(limits.request_body, ANSWER_GROWTH * limits.resource)
        self._asked = asked

    def refuse_larger(self, request: web.Request) -> web.Response | None:
        """413 for a request that announces more than `limits.request_body`, unless it may be an answer."""
        session = self._asked(request)
        limit = self._limit if session is None else self._answer_limit
        return None if (request.content_length or 0) <= limit else self._too_large(session, limit)

    def ready(self, request: web.Request) -> bytes | None:
        """The body, if all of it came with the head: nearly always."""
        content = request.content
        if not content.is_eof() or content.total_bytes > self._limit or content.exception() is not None:
            return None
        data = content.read_nowait()
        while not content.at_eof():
            data += content.read_nowait()
        return data

    async def read(self, request: web.Request) -> bytes | web.Response:
        """The body, or the answer to one that is too large, too slow, or breaks off."""
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
