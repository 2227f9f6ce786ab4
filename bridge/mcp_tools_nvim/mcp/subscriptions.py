"""Subscriptions to resources, of sessions and of `subscriptions/listen` streams.

Neovim counts all subscriptions. They end with the session; a revived session has none.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import mcp_types as types
from mcp.server.connection import Connection
from mcp.server.subscriptions import ListenHandler, ResourceUpdated, ServerEvent

from ..errors import Code, EditorError, NoAnswerError
from ..neovim.nvim import NvimEditor
from ..values import ToolError
from .dispatch import RequestContext, declared_client, notify_client, sdk_connection
from .results import editor_failure, resource_error

DEADLINE_SECONDS = 2.0
"""Maximum wait for Neovim to register a subscription."""

MAX_WATCHED = 4096
"""Maximum resources that Neovim watches for a bridge."""

MAX_LISTENED = 64
"""Maximum resources of one `subscriptions/listen`; more are not confirmed."""

MAX_OF_CLIENT = 4 * MAX_LISTENED
"""Maximum resources of all `subscriptions/listen` of clients with the same name, over all their streams."""

UPDATED = "notifications/resources/updated"

logger = logging.getLogger(__name__)


def session_share(sessions: int) -> int:
    """Returns the maximum resources of one session, so that every session gets its share."""
    return max(1, MAX_WATCHED // sessions)


class Subscriptions:
    """All subscriptions to resources.

    Args:
        editor: watches resources.
        publish: puts an event on the bus that `listen` serves.
        listen: the SDK's handler.
        sessions: maximum number of sessions.
    """

    def __init__(
        self, editor: NvimEditor, publish: Callable[[ServerEvent], None], listen: ListenHandler, sessions: int
    ) -> None:
        self._editor = editor
        self._publish = publish
        self._listen = listen
        self._share = session_share(sessions)
        self._sessions: dict[str, set[Connection]] = {}
        self._listened: dict[str, int] = {}
        self._of_client: Counter[str] = Counter()
        editor.on("updated", self._updated)

    async def subscribe(
        self, context: RequestContext, params: types.SubscribeRequestParams
    ) -> dict[str, Any]:
        """Handles `resources/subscribe`; idempotent."""
        connection, uri = sdk_connection(context), params.uri
        held = self._subscriptions_of(connection)
        if uri in held:
            return {}
        error = self._full(held) or await self._request_editor(uri)
        if error is not None:
            raise resource_error(context, uri, error)
        if uri in held or connection.state.get("closed"):
            self._editor.unsubscribe(uri)  # another request was faster, or the session has ended
            return {}
        if (error := self._full(held)) is not None:  # other requests have added subscriptions meanwhile
            self._editor.unsubscribe(uri)
            raise resource_error(context, uri, error)
        held.add(uri)
        self._sessions.setdefault(uri, set()).add(connection)
        return {}

    async def unsubscribe(
        self, context: RequestContext, params: types.UnsubscribeRequestParams
    ) -> dict[str, Any]:
        """Handles `resources/unsubscribe`; idempotent."""
        self._drop(sdk_connection(context), params.uri)
        return {}

    async def listen(
        self, context: RequestContext, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Serves `subscriptions/listen`; confirms only resources that can be watched."""
        wanted = list(dict.fromkeys(params.notifications.resource_subscriptions or ()))
        held: list[str] = []
        client = declared_client(sdk_connection(context))[0].name
        room = min(MAX_LISTENED, max(0, MAX_OF_CLIENT - self._of_client[client]))
        taken = len(wanted[:room])
        self._of_client[client] += taken  # before the first await, since other streams may start meanwhile
        try:
            await asyncio.gather(*(self._begin_listening(uri, held) for uri in wanted[:room]))
            uris = [uri for uri in wanted if uri in held]
            confirmed = params.notifications.model_copy(update={"resource_subscriptions": uris or None})
            return await self._listen(context, params.model_copy(update={"notifications": confirmed}))
        finally:
            self._of_client[client] -= taken
            if not self._of_client[client]:
                del self._of_client[client]
            for uri in held:
                self._stop_listening(uri)

    async def _begin_listening(self, uri: str, held: list[str]) -> None:
        if await self._request_editor(uri) is None:
            held.append(uri)
            self._listened[uri] = self._listened.get(uri, 0) + 1

    def _stop_listening(self, uri: str) -> None:
        self._editor.unsubscribe(uri)
        self._listened[uri] -= 1
        if not self._listened[uri]:
            del self._listened[uri]

    def _full(self, held: set[str]) -> ToolError | None:
        if len(held) < self._share:
            return None
        text = f"this session is subscribed to {len(held)} resources; unsubscribe from some first"
        return ToolError(Code.BUSY, text)

    async def _request_editor(self, uri: str) -> ToolError | None:
        """Subscribes with Neovim, and unsubscribes if it answers too late."""
        asked = self._editor.subscribe(uri)
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                return await asyncio.shield(asked)
        except TimeoutError:
            asked.add_done_callback(partial(self._unsubscribe_late, uri))
            return editor_failure(NoAnswerError())
        except asyncio.CancelledError:
            asked.add_done_callback(partial(self._unsubscribe_late, uri))
            raise
        except EditorError as failure:
            logger.error("subscription to %r: %s", uri, failure)
            return editor_failure(failure)

    def _unsubscribe_late(self, uri: str, asked: asyncio.Future[ToolError | None]) -> None:
        if not asked.cancelled() and asked.exception() is None and asked.result() is None:
            self._editor.unsubscribe(uri)

    def _subscriptions_of(self, connection: Connection) -> set[str]:
        """Returns the URIs that a session is subscribed to; they are unsubscribed at its end."""
        if "subscribed" not in connection.state:
            connection.state["subscribed"] = set()
            connection.exit_stack.callback(self._release, connection)
        held: set[str] = connection.state["subscribed"]
        return held

    def _release(self, connection: Connection) -> None:
        connection.state["closed"] = True
        for uri in list(self._subscriptions_of(connection)):
            self._drop(connection, uri)

    def _drop(self, connection: Connection, uri: str) -> None:
        held = self._subscriptions_of(connection)
        if uri in held:
            held.discard(uri)
            self._sessions[uri].discard(connection)
            if not self._sessions[uri]:
                del self._sessions[uri]
            self._editor.unsubscribe(uri)

    def _updated(self, uri: str) -> None:
        for connection in list(self._sessions.get(uri, ())):
            notify_client(connection, UPDATED, {"uri": uri}, f"{UPDATED} {uri}")
        if uri in self._listened:
            self._publish(ResourceUpdated(uri))
