"""Guards: checks of Host, Origin, token and media types, before the body of a request is read.

`app.py` lists them in order.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import lru_cache

from aiohttp import hdrs, web

from .. import jsonrpc
from .listener import served_port

MAX_PORT = 65535


Guard = Callable[[web.Request], web.Response | None]
"""Checks the head of a request: returns the response that refuses it, or None."""


def refused_by(guards: Iterable[Guard], request: web.Request) -> web.Response | None:
    """Returns the refusal of the first guard that refuses a request; None when all accept it."""
    for guard in guards:
        if (refused := guard(request)) is not None:
            return refused
    return None


def refusal(
    status: int,
    message: str,
    request: jsonrpc.RequestId | None = None,
    *,
    code: int = jsonrpc.INVALID_REQUEST,
    **headers: str,
) -> web.Response:
    """Returns an error response, with the request's id if known. Header names have `_` for `-`."""
    return web.Response(
        status=status,
        body=jsonrpc.dumps(jsonrpc.error(request, code, message)),
        content_type="application/json",
        headers={name.replace("_", "-"): value for name, value in headers.items()},
    )


@lru_cache(maxsize=64)
def names_loopback(host: str) -> bool:
    """Whether a lower-case host, with or without a port, is a loopback name or address."""
    return _without_port(host) in ("127.0.0.1", "localhost", "[::1]")


def port_of(host: str) -> int | None:
    """Returns the port of `host:port`, or None."""
    bare = _without_port(host)
    port = host[len(bare) + 1 :]
    return int(port) if _is_port(port) else None


def _without_port(host: str) -> str:
    if host.startswith("["):
        end = host.find("]") + 1
        return (
            host[:end]
            if end == len(host) or (host[end : end + 1] == ":" and _is_port(host[end + 1 :]))
            else ""
        )
    name, colon, port = host.partition(":")
    return name if not colon or _is_port(port) else ""


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 5 and 1 <= int(text) <= MAX_PORT


def host_guard(allowed: Collection[str]) -> Guard:
    """Returns a guard that answers 403 unless the Host is loopback (any port) or in `allowed`.

    The Host must occur once. The host of an absolute request target is checked, too.
    """
    names = frozenset(host.lower() for host in allowed)

    def admits(host: str) -> bool:
        if names_loopback(host) or host in names:
            return True
        port = port_of(host)
        return port is not None and host.removesuffix(f":{port}") in names

    def refuse(request: web.Request) -> web.Response | None:
        hosts = request.headers.getall(hdrs.HOST, [])
        if len(hosts) == 1 and admits(hosts[0].lower()):
            target = request.raw_path
            # RFC 9112, 3.2.2: the host of a target in absolute form replaces the header.
            if target.startswith("/") or admits(_authority(target)):
                return None
        return refusal(403, "Host is not allowed; see bridge.allowed_hosts")

    return refuse


def _authority(target: str) -> str:
    """Returns host and port of an absolute target; empty for any other form."""
    scheme, separator, rest = target.partition("://")
    if not separator or scheme.lower() != "http":
        return ""
    return rest.split("/", 1)[0].split("?", 1)[0].lower()


def origin_guard(allowed: Collection[str]) -> Guard:
    """Returns a guard that answers 403 to browsers, unless the origin is our own port or in `allowed`.

    Other clients send no Origin. `null` (sandboxed and file pages) is never allowed.
    """
    names = frozenset(origin.lower().rstrip("/") for origin in allowed) - {"null"}

    def refuse(request: web.Request) -> web.Response | None:
        origins = request.headers.getall(hdrs.ORIGIN, [])
        if not origins:
            return None
        origin = origins[0].lower()
        if len(origins) == 1 and (origin in names or _is_own(origin, request)):
            return None
        return refusal(403, "Origin is not allowed; see bridge.allowed_origins")

    return refuse


def _is_own(origin: str, request: web.Request) -> bool:
    host = origin.removeprefix("http://")
    return host != origin and names_loopback(host) and (port_of(host) or 80) == served_port(request)


def unauthorized() -> web.Response:
    """Returns the response to a request without the token."""
    return refusal(401, "Unauthorized: missing or wrong bearer token", WWW_Authenticate="Bearer")


HeaderValues = Callable[[str], Sequence[str]]
"""Returns all values of a header, by its name in lower case."""


def header_values(request: web.Request) -> HeaderValues:
    """Returns the look-up of a request's headers."""
    return lambda name: request.headers.getall(name, ())


def has_token(values: HeaderValues, header: str, scheme: str | None, token: str) -> bool:
    """Whether a header occurs once and is `scheme` and `token`; False for an empty token."""
    found = values(header)
    if len(found) != 1:
        return False
    text = found[0].strip()
    word, _, secret = text.partition(" ") if scheme is not None else ("", "", text)
    same = hmac.compare_digest(secret.strip().encode("utf-8", "surrogateescape"), token.encode())
    return same and token != "" and word.lower() == (scheme or "").lower()


def json_guard(request: web.Request) -> web.Response | None:
    """Returns 415 for a body that is not JSON, or that is compressed and might expand to gigabytes."""
    encoding = request.headers.get(hdrs.CONTENT_ENCODING)
    if encoding is not None and encoding.strip().lower() != "identity":
        response = refusal(415, "Content-Encoding is not supported; send the body uncompressed")
        response.force_close()
        return response
    if _is_json(request.headers.get(hdrs.CONTENT_TYPE, "")):
        return None
    return refusal(415, "Content-Type must be application/json")


def accept_guard(*wanted: str) -> Guard:
    """Returns a guard that answers 406 to a client that does not accept all of these types."""

    def refuse(request: web.Request) -> web.Response | None:
        if _accepts(",".join(request.headers.getall(hdrs.ACCEPT, ["*/*"])), wanted):
            return None
        return refusal(406, f"Accept must include {' and '.join(wanted)}")

    return refuse


@lru_cache(maxsize=64)
def _is_json(header: str) -> bool:
    return header.partition(";")[0].strip().lower() == "application/json"


@lru_cache(maxsize=64)
def _accepts(header: str, wanted: tuple[str, ...]) -> bool:
    accepted = _accepted(header)
    for media_type in wanted:
        ranges = (media_type, f"{media_type.partition('/')[0]}/*", "*/*")
        # The most specific media range applies.
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
