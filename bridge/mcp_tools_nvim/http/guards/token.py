"""The bearer token. No option turns it off."""

from __future__ import annotations

import hmac

from aiohttp import hdrs, web

from ..parts import Token
from . import refusal


class TokenGuard:
    """Refuses a request without the token."""

    def __init__(self, token: Token) -> None:
        self._token = token

    def refuse(self, request: web.Request) -> web.Response | None:
        """401 for no token, another one, or more than one."""
        if self.holds(request):
            return None
        return refusal(401, "Unauthorized: missing or wrong bearer token", WWW_Authenticate="Bearer")

    def holds(self, request: web.Request) -> bool:
        """Whether the request carries the token; takes equally long for every wrong one."""
        values = request.headers.getall(hdrs.AUTHORIZATION, [])
        if len(values) != 1:
            return False
        scheme, _, given = values[0].partition(" ")
        wanted = self._token.value.encode()
        same = hmac.compare_digest(given.strip().encode("utf-8", "surrogateescape"), wanted)
        return same and bool(wanted) and scheme.lower() == "bearer"
