"""Notifies clients of changed lists: sessions by `broadcast`, subscription streams by the SDK's bus."""

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
from .definitions import DefinitionList

CHANGE_DELAY_SECONDS = 0.05
"""Registrations come in bursts, which get one notification."""

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
        """`concerned`: selects sessions; None = all."""


class Announcer:
    """Notifies clients of changed lists.

    Args:
        broadcast: notifies sessions.
        scoped: returns the lists of tools of clients with a scope.
    """

    def __init__(self, broadcast: Broadcast, scoped: Callable[[], dict[View, DefinitionList]]) -> None:
        self.bus = InMemorySubscriptionBus()
        self._broadcast = broadcast
        self._scoped = scoped
        self._pending: dict[str, ServerEvent] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._publishing: set[asyncio.Task[None]] = set()

    def changed(self, kind: str, revision: int) -> None:
        """Handles Neovim's event of a change; kinds without a notification are ignored."""
        if kind not in _ANNOUNCED:
            return
        method, event = _ANNOUNCED[kind]
        self._pending[method] = event
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(CHANGE_DELAY_SECONDS, self._announce)

    def publish(self, event: ServerEvent) -> None:
        """Sends an event to the streams that listen for it."""
        self._spawn(self.bus.publish(event))

    def stop(self) -> None:
        """Stops pending notifications."""
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
            self._spawn(self._announce_if_changed(view, listing))

    async def _announce_if_changed(self, view: View, listing: DefinitionList) -> None:
        if await listing.has_changed():
            self._broadcast(TOOLS, lambda other: other == view)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        publishing = asyncio.get_running_loop().create_task(work)
        self._publishing.add(publishing)
        publishing.add_done_callback(self._publishing.discard)
