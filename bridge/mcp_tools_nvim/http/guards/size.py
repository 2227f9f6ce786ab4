"""The size of a request, as its head declares it; a body without a length is counted while it is read."""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web

from ... import jsonrpc
from . import refusal


class SizeGuard:
    """Refuses a request that announces a larger body than it may have.

    Args:
        limit: `limits.request_body`.
        refuse_larger: judges a request that announces more.
    """

    def __init__(self, limit: int, refuse_larger: Callable[[web.Request], web.Response | None]) -> None:
        self._limit = limit
        self._refuse_larger = refuse_larger

    def refuse(self, request: web.Request) -> web.Response | None:
        """413 when the declared length is over the limit."""
        length = request.content_length
        return None if length is None or length <= self._limit else self._refuse_larger(request)


def too_large(limit: int) -> web.Response:
    """The answer to a body of more than `limit` bytes; closes the connection, with whatever still comes."""
    response = refusal(413, f"Request body is larger than {limit} bytes", code=jsonrpc.TOO_LARGE)
    response.force_close()
    return response
