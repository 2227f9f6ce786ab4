"""Types, as the head of a request declares them: of its body, and of what its client takes for an answer."""

from __future__ import annotations

from functools import lru_cache

from aiohttp import hdrs, web

from . import refusal


class JsonGuard:
    """Refuses a body that is no JSON, or is packed, since it may be a thousand times as large."""

    def refuse(self, request: web.Request) -> web.Response | None:
        """415 for the body's type or encoding."""
        encoding = request.headers.get(hdrs.CONTENT_ENCODING)
        if encoding is not None and encoding.strip().lower() != "identity":
            response = refusal(415, "Content-Encoding is not supported; send the body as it is")
            response.force_close()
            return response
        if _is_json(request.headers.get(hdrs.CONTENT_TYPE, "")):
            return None
        return refusal(415, "Content-Type must be application/json")


class AcceptGuard:
    """Refuses a client that does not take what it may be answered with.

    Args:
        wanted: types of the answer, each of which it must accept.
    """

    def __init__(self, *wanted: str) -> None:
        self._wanted = wanted

    def refuse(self, request: web.Request) -> web.Response | None:
        """406 where a type is missing."""
        if _accepts(",".join(request.headers.getall(hdrs.ACCEPT, ["*/*"])), self._wanted):
            return None
        return refusal(406, f"Accept must include {' and '.join(self._wanted)}")


@lru_cache(maxsize=64)
def _is_json(header: str) -> bool:
    return header.partition(";")[0].strip().lower() == "application/json"


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
