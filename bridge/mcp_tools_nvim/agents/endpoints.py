"""The endpoints: which there are, and which of them a request opens.

Receives: endpoints as the editor tells them; the head of a request. Sends: the endpoint whose token it shows.
Does not know about: transports, sessions, aiohttp.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable, Iterator, Sequence

from ..values import Endpoint, ServerInfo

Values = Callable[[str], Sequence[str]]
"""All values of a header, by its name in small letters."""


class Endpoints:
    """See the head of this file."""

    def __init__(self, endpoints: Iterable[Endpoint] = ()) -> None:
        self._by_name: dict[str, Endpoint] = {}
        self.set(endpoints)

    def __bool__(self) -> bool:
        return bool(self._by_name)

    def __iter__(self) -> Iterator[Endpoint]:
        return iter(list(self._by_name.values()))

    def set(self, endpoints: Iterable[Endpoint]) -> None:
        """From now on these are all."""
        self._by_name = {endpoint.name: endpoint for endpoint in endpoints}

    def server_info(self, companion: str) -> ServerInfo | None:
        """What the agent of a companion is told that it has found."""
        endpoint = self._by_name.get(companion)
        return None if endpoint is None else endpoint.server

    def opened_by(self, values: Values, unix: str | None = None) -> Endpoint | None:
        """The endpoint whose token a request shows; takes equally long for every wrong one.

        Args:
            values: the headers of the request.
            unix: name of the endpoint whose socket it came by; without one it came to the port.
        """
        found = None
        for endpoint in self._by_name.values():
            here = unix == endpoint.name if endpoint.transport == "unix" else unix is None
            if holds(endpoint, values) and here:
                found = endpoint
        return found


def holds(endpoint: Endpoint, values: Values) -> bool:
    """Whether a request shows the token of an endpoint, once and as that endpoint wants it."""
    given = values(endpoint.header)
    if len(given) != 1:
        return False
    text = given[0].strip()
    scheme, _, secret = text.partition(" ") if endpoint.scheme is not None else ("", "", text)
    same = hmac.compare_digest(secret.strip().encode("utf-8", "surrogateescape"), endpoint.token.encode())
    return same and scheme.lower() == (endpoint.scheme or "").lower()
