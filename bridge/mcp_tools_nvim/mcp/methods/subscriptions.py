"""Who hears that a resource changed: sessions that subscribed, and the streams of `subscriptions/listen`.

Each holder of a subscription has one with the editor, which counts them. All go with the session; a session
that is revived begins without any.
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

from ...errors import Code, EditorError
from ...neovim import Editor
from ...values import ToolError
from ..errors import editor_failure, resource_refusal
from ..request import Context, connection_of, tell, who

DEADLINE_SECONDS = 2.0
"""How long a subscription may wait for an editor that does not answer."""

EDITOR_GRANTS = 4096
"""Resources that the editor watches for one bridge."""

MAX_LISTENED = 64
"""Resources of one `subscriptions/listen`; those beyond are left out of what it is told that it gets."""

MAX_OF_CLIENT = 4 * MAX_LISTENED
"""The same of all streams of clients with one name: streams are cheap, and what the editor watches is not."""

UPDATED = "notifications/resources/updated"

logger = logging.getLogger(__name__)


def share(sessions: int) -> int:
    """Resources of one session, so that all sessions that there may be find room, whatever others hold."""
    return max(1, EDITOR_GRANTS // sessions)


class Subscriptions:
    """See the head of this file.

    Args:
        editor: watches resources.
        publish: puts an event on the bus that `listen` serves.
        listen: the SDK's handler.
        sessions: as many may there be.
    """

    def __init__(
        self, editor: Editor, publish: Callable[[ServerEvent], None], listen: ListenHandler, sessions: int
    ) -> None:
        self._editor = editor
        self._publish = publish
        self._listen = listen
        self._share = share(sessions)
        self._sessions: dict[str, set[Connection]] = {}
        self._listened: dict[str, int] = {}
        self._of_client: Counter[str] = Counter()
        editor.on_updated(self._updated)

    async def subscribe(self, context: Context, params: types.SubscribeRequestParams) -> dict[str, Any]:
        """`resources/subscribe`. A second time it changes nothing."""
        connection, uri = connection_of(context), params.uri
        held = self._held(connection)
        if uri in held:
            return {}
        error = self._full(held) or await self._ask(uri)
        if error is not None:
            raise resource_refusal(context, uri, error)
        if uri in held or connection.state.get("closed"):
            self._editor.unsubscribe(uri)  # another request of the client, or its end, came first
            return {}
        if (error := self._full(held)) is not None:  # others of its requests filled it meanwhile
            self._editor.unsubscribe(uri)
            raise resource_refusal(context, uri, error)
        held.add(uri)
        self._sessions.setdefault(uri, set()).add(connection)
        return {}

    async def unsubscribe(self, context: Context, params: types.UnsubscribeRequestParams) -> dict[str, Any]:
        """`resources/unsubscribe`; without a subscription it changes nothing."""
        self._drop(connection_of(context), params.uri)
        return {}

    async def listen(
        self, context: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """`subscriptions/listen`, as long as it runs. It confirms only what can be watched."""
        wanted = list(dict.fromkeys(params.notifications.resource_subscriptions or ()))
        held: list[str] = []
        client = who(connection_of(context))[0].name
        room = min(MAX_LISTENED, max(0, MAX_OF_CLIENT - self._of_client[client]))
        taken = len(wanted[:room])
        self._of_client[client] += taken  # before anything is waited for: other streams begin meanwhile
        try:
            await asyncio.gather(*(self._begin_listening(uri, held) for uri in wanted[:room]))
            uris = [uri for uri in wanted if uri in held]
            honoured = params.notifications.model_copy(update={"resource_subscriptions": uris or None})
            return await self._listen(context, params.model_copy(update={"notifications": honoured}))
        finally:
            self._of_client[client] -= taken
            if not self._of_client[client]:
                del self._of_client[client]
            for uri in held:
                self._stop_listening(uri)

    async def _begin_listening(self, uri: str, held: list[str]) -> None:
        if await self._ask(uri) is None:
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

    async def _ask(self, uri: str) -> ToolError | None:
        """Subscribes with the editor. One that is granted after its client went is taken back."""
        asked = self._editor.subscribe(uri)
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                return await asyncio.shield(asked)
        except TimeoutError:
            asked.add_done_callback(partial(self._take_back, uri))
            return ToolError(Code.EDITOR_BLOCKED, "Neovim does not answer; look for a prompt in it")
        except asyncio.CancelledError:
            asked.add_done_callback(partial(self._take_back, uri))
            raise
        except EditorError as failure:
            logger.error("subscription to %r: %s", uri, failure)
            return editor_failure(failure)

    def _take_back(self, uri: str, asked: asyncio.Future[ToolError | None]) -> None:
        if not asked.cancelled() and asked.exception() is None and asked.result() is None:
            self._editor.unsubscribe(uri)

    def _held(self, connection: Connection) -> set[str]:
        """What a session is subscribed to; its end takes all of it back."""
        if "subscribed" not in connection.state:
            connection.state["subscribed"] = set()
            connection.exit_stack.callback(self._release, connection)
        held: set[str] = connection.state["subscribed"]
        return held

    def _release(self, connection: Connection) -> None:
        connection.state["closed"] = True
        for uri in list(self._held(connection)):
            self._drop(connection, uri)

    def _drop(self, connection: Connection, uri: str) -> None:
        held = self._held(connection)
        if uri in held:
            held.discard(uri)
            self._sessions[uri].discard(connection)
            if not self._sessions[uri]:
                del self._sessions[uri]
            self._editor.unsubscribe(uri)

    def _updated(self, uri: str) -> None:
        for connection in list(self._sessions.get(uri, ())):
            tell(connection, UPDATED, {"uri": uri}, f"{UPDATED} {uri}")
        if uri in self._listened:
            self._publish(ResourceUpdated(uri))
