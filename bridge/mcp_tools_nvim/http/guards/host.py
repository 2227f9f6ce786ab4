"""Host and Origin: what keeps web pages away from a server on loopback, whatever a name resolves to."""

from __future__ import annotations

from collections.abc import Collection

from aiohttp import hdrs, web

from ..connection import served_port
from . import names_loopback, port_of, refusal


class HostGuard:
    """Refuses a request whose Host is neither loopback (any port) nor in `bridge.allowed_hosts`."""

    def __init__(self, allowed: Collection[str]) -> None:
        self._allowed = frozenset(host.lower() for host in allowed)

    def refuse(self, request: web.Request) -> web.Response | None:
        """403 for a foreign, missing or repeated Host, and for a target that names a foreign one itself."""
        hosts = request.headers.getall(hdrs.HOST, [])
        if len(hosts) == 1 and self._admits(hosts[0].lower()):
            target = request.raw_path
            # RFC 9112, 3.2.2: the host in a target of the absolute form counts instead of the header.
            if target.startswith("/") or self._admits(_authority(target)):
                return None
        return refusal(403, "Host is not allowed; see bridge.allowed_hosts")

    def _admits(self, host: str) -> bool:
        if names_loopback(host) or host in self._allowed:
            return True
        port = port_of(host)
        return port is not None and host.removesuffix(f":{port}") in self._allowed


def _authority(target: str) -> str:
    """The host of an absolute target, with its port; empty for every other form."""
    scheme, separator, rest = target.partition("://")
    if not separator or scheme.lower() != "http":
        return ""
    return rest.split("/", 1)[0].split("?", 1)[0].lower()


class OriginGuard:
    """Refuses a browser's request, unless it comes from our own port or `bridge.allowed_origins` names it.

    Clients that are not browsers send no Origin. `null` (sandboxed and file pages) is never allowed.
    """

    def __init__(self, allowed: Collection[str]) -> None:
        self._allowed = frozenset(origin.lower().rstrip("/") for origin in allowed) - {"null"}

    def refuse(self, request: web.Request) -> web.Response | None:
        """403 for a foreign Origin."""
        origins = request.headers.getall(hdrs.ORIGIN, None)
        if origins is None:
            return None
        if len(origins) == 1:
            origin = origins[0].lower()
            if origin in self._allowed or self._is_own(origin, request):
                return None
        return refusal(403, "Origin is not allowed; see bridge.allowed_origins")

    @staticmethod
    def _is_own(origin: str, request: web.Request) -> bool:
        host = origin.removeprefix("http://")
        return host != origin and names_loopback(host) and (port_of(host) or 80) == served_port(request)
