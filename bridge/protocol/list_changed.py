"""Tells every client that a list changed: sessions by `broadcast`, subscription streams by the SDK's bus.

Receives: the editor's `changed`. Sends: one announcement for a burst of changes.
Does not know about: who listens.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    PromptsListChanged,
    ResourcesListChanged,
    ServerEvent,
    ToolsListChanged,
)

CHANGE_DELAY_SECONDS = 0.05
"""Registrations come in bursts; one announcement for all of them."""

_ANNOUNCED: dict[str, tuple[str, ServerEvent]] = {
    "tools": ("notifications/tools/list_changed", ToolsListChanged()),
    "resources": ("notifications/resources/list_changed", ResourcesListChanged()),
    "templates": ("notifications/resources/list_changed", ResourcesListChanged()),
    "prompts": ("notifications/prompts/list_changed", PromptsListChanged()),
}


class Announcer:
    """See the head of this file."""

    def __init__(self, broadcast: Callable[[str], None]) -> None:
        self.bus = InMemorySubscriptionBus()
        self._broadcast = broadcast
        self._pending: dict[str, ServerEvent] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._publishing: set[asyncio.Task[None]] = set()

    def changed(self, kind: str, revision: int) -> None:
        """The editor's event; kinds that are not advertised are nobody's business."""
        if kind not in _ANNOUNCED:
            return
        method, event = _ANNOUNCED[kind]
        self._pending[method] = event
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(CHANGE_DELAY_SECONDS, self._announce)

    def publish(self, event: ServerEvent) -> None:
        """Puts an event on the bus, for those streams that asked for it."""
        publishing = asyncio.get_running_loop().create_task(self.bus.publish(event))
        self._publishing.add(publishing)
        publishing.add_done_callback(self._publishing.discard)

    def stop(self) -> None:
        """Nothing more is announced."""
        if self._timer is not None:
            self._timer.cancel()

    def _announce(self) -> None:
        self._timer = None
        pending, self._pending = self._pending, {}
        for method, event in pending.items():
            self._broadcast(method)
            self.publish(event)
