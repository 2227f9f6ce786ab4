"""Tells every client that a list changed: sessions by `broadcast`, subscription streams by the SDK's bus."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    PromptsListChanged,
    ResourcesListChanged,
    ServerEvent,
    ToolsListChanged,
)

from ..values import View
from .definitions import Listing

CHANGE_DELAY_SECONDS = 0.05
"""Registrations come in bursts; one announcement for all of them."""

TOOLS = "notifications/tools/list_changed"

_ANNOUNCED: dict[str, tuple[str, ServerEvent]] = {
    "tools": (TOOLS, ToolsListChanged()),
    "resources": ("notifications/resources/list_changed", ResourcesListChanged()),
    "templates": ("notifications/resources/list_changed", ResourcesListChanged()),
    "prompts": ("notifications/prompts/list_changed", PromptsListChanged()),
}


class Broadcast(Protocol):
    """Sends a notification without parameters to every session."""

    def __call__(self, method: str, concerned: Callable[[View], bool] | None = None) -> None:
        """`concerned`: to which of them; all when left out."""


class Announcer:
    """See the head of this file.

    Args:
        broadcast: reaches the sessions.
        scoped: the lists of tools of those who asked for less than there is.
    """

    def __init__(self, broadcast: Broadcast, scoped: Callable[[], dict[View, Listing]]) -> None:
        self.bus = InMemorySubscriptionBus()
        self._broadcast = broadcast
        self._scoped = scoped
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
        self._spawn(self.bus.publish(event))

    def stop(self) -> None:
        """Nothing more is announced."""
        if self._timer is not None:
            self._timer.cancel()

    def _announce(self) -> None:
        self._timer = None
        pending, self._pending = self._pending, {}
        for method, event in pending.items():
            self._announce_to_sessions(method)
            self.publish(event)

    def _announce_to_sessions(self, method: str) -> None:
        scoped = self._scoped() if method == TOOLS else {}
        self._broadcast(method, (lambda view: view not in scoped) if scoped else None)
        for view, listing in scoped.items():
            self._spawn(self._announce_if_news(view, listing))

    async def _announce_if_news(self, view: View, listing: Listing) -> None:
        if await listing.is_news():
            self._broadcast(TOOLS, lambda other: other == view)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        publishing = asyncio.get_running_loop().create_task(work)
        self._publishing.add(publishing)
        publishing.add_done_callback(self._publishing.discard)
