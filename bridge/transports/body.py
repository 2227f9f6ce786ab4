"""What a request carries: its types, as its head declares them, and its body, within size and time.

Does not know about: sessions, what the body says.
"""

from __future__ import annotations

import asyncio
from functools import lru_cache

from aiohttp import web

from .. import jsonrpc
from ..guards import refusal
from ..guards.limits import too_large

BODY_SECONDS = 30.0
"""4 MiB in half a minute is slower than any client on this machine is on purpose."""


async def read_body(request: web.Request, limit: int) -> bytes | web.Response:
    """The body, or the answer to one that is too large, too slow, or breaks off."""
    try:
        content = request.content
        if content.is_eof():  # nearly always: the body came with the head
            data = content.read_nowait()
            while not content.at_eof():
                data += content.read_nowait()
            return data if len(data) <= limit else too_large(limit)
        async with asyncio.timeout(BODY_SECONDS):
            return await request.read()
    except web.HTTPRequestEntityTooLarge:
        return too_large(limit)
    except TimeoutError:
        response = refusal(408, f"Request body took longer than {BODY_SECONDS:g} s")
    except (web.RequestPayloadError, ConnectionError):
        response = refusal(400, "Request body is incomplete", code=jsonrpc.PARSE_ERROR)
    response.force_close()
    return response


def wrong_content_type(request: web.Request) -> web.Response | None:
    """415, unless the body is declared as JSON."""
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
