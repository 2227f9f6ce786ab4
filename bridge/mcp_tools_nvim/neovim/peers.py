"""Who calls, as the editor was told: what stays the same from call to call crosses once.

The editor works off what it is sent in order, so that a caller is known before its next call comes.
"""

from __future__ import annotations

from typing import Any

from ..values import CallRequest, ClientInfo, Scope

MAX_PEERS = 64
"""As many as there are sessions in memory; of more the oldest is told anew when it calls again."""

Key = tuple[ClientInfo, str, str | None, Scope | None, int]


class Peers:
    """See the head of this file."""

    def __init__(self) -> None:
        self._known: dict[Key, tuple[int, dict[str, Any] | None]] = {}
        self._numbers = iter(range(1, MAX_PEERS + 1))

    @staticmethod
    def key(request: CallRequest, timeout_ms: int) -> Key:
        """What a caller is known by, but for its capabilities."""
        return request.client, request.host, request.session, request.scope, timeout_ms

    def find(self, key: Key, request: CallRequest) -> int | None:
        """The number that the editor knows the caller by; None = it has to be told."""
        known = self._known.get(key)
        if known is None or (known[1] is not request.capabilities and known[1] != request.capabilities):
            return None
        return known[0]

    def number(self, key: Key) -> int:
        """The number that a caller is told by."""
        known = self._known.get(key)
        if known is not None:
            return known[0]
        number = next(self._numbers, None)
        return self._known.pop(next(iter(self._known)))[0] if number is None else number

    def told(self, key: Key, number: int, request: CallRequest) -> None:
        """The editor was told of it."""
        self._known[key] = number, request.capabilities
