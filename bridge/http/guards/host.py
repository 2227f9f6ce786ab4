"""Host and Origin: what keeps web pages away from a server on loopback, whatever a name resolves to."""

from __future__ import annotations

from collections.abc import Collection

from aiohttp import web

from . import names_loopback, port_of, refusal


class HostGuard:
    """Refuses a request whose Host is neither loopback (any port) nor in `bridge.allowed_hosts`."""

    def __init__(self, allowed: Collection[str]) -> None:
        self._allowed = frozenset(host.lower() for host in allowed)

    def refuse(self, request: web.Request) -> web.Response | None:
        """403 for a foreign, missing or repeated Host."""
        hosts = request.headers.getall("Host", [])
        if len(hosts) == 1:
            host = hosts[0].lower()
            if names_loopback(host) or host in self._allowed:
                return None
            port = port_of(host)
            if port is not None and host.removesuffix(f":{port}") in self._allowed:
                return None
        return refusal(403, "Host is not allowed; see bridge.allowed_hosts")


class OriginGuard:
    """Refuses a browser's request, unless it comes from our own port or `bridge.allowed_origins` names it.

    Clients that are not browsers send no Origin. `null` (sandboxed and file pages) is never allowed.
    """

    def __init__(self, allowed: Collection[str]) -> None:
        self._allowed = frozenset(origin.lower().rstrip("/") for origin in allowed) - {"null"}

    def refuse(self, request: web.Request) -> web.Response | None:
        """403 for a foreign Origin."""
        origins = request.headers.getall("Origin", None)
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
        if host == origin or not names_loopback(host) or request.transport is None:
            return False
        # The connection's own port: right also while two ports are served.
        served: int = request.transport.get_extra_info("sockname")[1]
        return (port_of(host) or 80) == served
