"""What a request carries: its types, as its head declares them, and its body, within size and time.

Receives: requests; whether their client was asked for something. Sends: bodies, or refusals.
Does not know about: sessions, what the body says.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from aiohttp import web

from .. import jsonrpc
from .guards import refusal
from .guards.size import too_large

if TYPE_CHECKING:
    from ..model import Limits
    from ..sessions.session import Session

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

    async def read(self, request: web.Request) -> bytes | web.Response:
        """The body, or the answer to one that is too large, too slow, or breaks off."""
        limit, session, length = self._limit, None, request.content_length
        if (length is None or length > limit) and (session := self._asked(request)) is not None:
            limit = self._answer_limit
            request = request.clone(client_max_size=limit)
        try:
            content = request.content
            if content.is_eof():  # nearly always: the body came with the head
                data = content.read_nowait()
                while not content.at_eof():
                    data += content.read_nowait()
                return data if len(data) <= limit else self._too_large(session, limit)
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
            session.lose_answer(limit)
        return too_large(limit)


def wrong_content_type(request: web.Request) -> web.Response | None:
    """415, unless the body is declared as JSON, as it is: what is packed may be a thousand times as large."""
    if request.headers.get("Content-Encoding", "identity").strip().lower() != "identity":
        response = refusal(415, "Content-Encoding is not supported; send the body as it is")
        response.force_close()
        return response
    if request.content_type.lower() == "application/json":
        return None
    return refusal(415, "Content-Type must be application/json")


def not_acceptable(request: web.Request, *wanted: str) -> web.Response | None:
    """406, unless the client accepts each of the wanted types."""
    if _accepts(",".join(request.headers.getall("Accept", ["*/*"])), wanted):
        return None
    return refusal(406, f"Accept must include {' and '.join(wanted)}")


@lru_cache(maxsize=64)
def _accepts(header: str, wanted: tuple[str, ...]) -> bool:
    accepted = _accepted(header)
    for media_type in wanted:
        ranges = (media_type, f"{media_type.partition('/')[0]}/*", "*/*")
        # The most specific range decides.
        if not next((accepted[range_] for range_ in ranges if range_ in accepted), False):
            return False
    return True


def _accepted(header: str) -> dict[str, bool]:
    ranges: dict[str, bool] = {}
    for part in header.split(","):
        media_type, *parameters = (piece.strip().lower() for piece in part.split(";"))
        if media_type:
            ranges[media_type] = not any(_is_zero_quality(parameter) for parameter in parameters)
    return ranges


def _is_zero_quality(parameter: str) -> bool:
    name, _, value = parameter.partition("=")
    try:
        return name.strip() == "q" and float(value) == 0
    except ValueError:
        return False
