"""The doors: which there are, and which of them a request opens.

Receives: doors as the editor tells them; the head of a request. Sends: the door whose token it shows.
Does not know about: transports, sessions, aiohttp.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable, Iterator, Sequence

from ..model import Door, ServerInfo

Values = Callable[[str], Sequence[str]]
"""All values of a header, by its name in small letters."""


class Doors:
    """See the head of this file."""

    def __init__(self, doors: Iterable[Door] = ()) -> None:
        self._by_name: dict[str, Door] = {}
        self.set(doors)

    def __bool__(self) -> bool:
        return bool(self._by_name)

    def __iter__(self) -> Iterator[Door]:
        return iter(list(self._by_name.values()))

    def set(self, doors: Iterable[Door]) -> None:
        """From now on these are all."""
        self._by_name = {door.name: door for door in doors}

    def server_info(self, companion: str) -> ServerInfo | None:
        """What the agent of a companion is told that it has found."""
        door = self._by_name.get(companion)
        return None if door is None else door.server

    def opened_by(self, values: Values, unix: str | None = None) -> Door | None:
        """The door whose token a request shows; takes equally long for every wrong one.

        Args:
            values: the headers of the request.
            unix: name of the door whose socket it came by; without one it came to the port.
        """
        found = None
        for door in self._by_name.values():
            here = unix == door.name if door.transport == "unix" else unix is None
            if holds(door, values) and here:
                found = door
        return found


def holds(door: Door, values: Values) -> bool:
    """Whether a request shows the token of a door, once and as that door wants it."""
    given = values(door.header)
    if len(given) != 1:
        return False
    text = given[0].strip()
    scheme, _, secret = text.partition(" ") if door.scheme is not None else ("", "", text)
    same = hmac.compare_digest(secret.strip().encode("utf-8", "surrogateescape"), door.token.encode())
    return same and scheme.lower() == (door.scheme or "").lower()
