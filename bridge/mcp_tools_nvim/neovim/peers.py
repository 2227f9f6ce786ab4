"""Numbers for callers, so that their constant data is sent to Neovim once and not with every call.

Neovim handles messages in order, so a caller is known before its next call arrives.
"""

from __future__ import annotations

from typing import Any

from ..values import CallRequest, ClientInfo, Scope

MAX_PEERS = 64
"""Maximum known callers, the default of limits.sessions; the oldest one is sent again with its next call."""

Key = tuple[ClientInfo, str, str | None, Scope | None, int]


class Peers:
    """The callers that Neovim knows."""

    def __init__(self) -> None:
        self._known: dict[Key, tuple[int, dict[str, Any] | None]] = {}
        self._numbers = iter(range(1, MAX_PEERS + 1))

    @staticmethod
    def key(request: CallRequest, timeout_ms: int) -> Key:
        """Returns what identifies a caller, except its capabilities."""
        return request.client, request.host, request.session, request.scope, timeout_ms

    def find(self, key: Key, request: CallRequest) -> int | None:
        """Returns the number of a known caller; None if it must be sent."""
        known = self._known.get(key)
        if known is None or (known[1] is not request.capabilities and known[1] != request.capabilities):
            return None
        return known[0]

    def number(self, key: Key) -> int:
        """Returns the number for a caller that must be sent."""
        known = self._known.get(key)
        if known is not None:
            return known[0]
        number = next(self._numbers, None)
        return self._known.pop(next(iter(self._known)))[0] if number is None else number

    def sent(self, key: Key, number: int, request: CallRequest) -> None:
        """Records that a caller was sent."""
        self._known[key] = number, request.capabilities
