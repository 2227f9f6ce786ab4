"""Notifications of changes that a client of the Python SDK receives, over any transport."""

from __future__ import annotations

import asyncio
import contextlib
import time
import warnings
from collections.abc import AsyncIterator, Sequence
from typing import Any

from mcp import Client, types
from mcp.shared.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)

from .bridge import Bridge, Transport, connect

SUBJECTS: dict[type[Any], str] = {
    types.ToolListChangedNotification: "tools",
    types.ResourceListChangedNotification: "resources",
    types.PromptListChangedNotification: "prompts",
    ToolsListChanged: "tools",
    ResourcesListChanged: "resources",
    PromptsListChanged: "prompts",
}


class News:
    """`(subject, time)` of notifications; the subject is a URI or a kind such as `tools`."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, float]] = []
        self._arrived = asyncio.Event()

    async def wait_for(self, what: str, seconds: float = 5.0) -> float:
        """Waits for a notification and returns the time of the first one."""
        async with asyncio.timeout(seconds):
            while True:
                for seen, at in self.seen:
                    if seen == what:
                        return at
                self._arrived.clear()
                await self._arrived.wait()

    async def message(self, message: Any) -> None:
        """The handler of a client with a session, and of the stream of one without."""
        if isinstance(message, types.ResourceUpdatedNotification):
            what = message.params.uri
        else:
            what = message.uri if isinstance(message, ResourceUpdated) else SUBJECTS.get(type(message))
        if what:
            self.seen.append((what, time.monotonic()))
            self._arrived.set()

    async def follow(self, changes: Any) -> None:
        """Reads the stream of a client without a session."""
        async for event in changes:
            await self.message(event)


@contextlib.asynccontextmanager
async def follow(
    bridge: Bridge, transport: Transport, uris: Sequence[str] = (), query: str = ""
) -> AsyncIterator[tuple[Client, News]]:
    """A client subscribed to these resources and to the lists; `query` is added to its URL."""
    news = News()
    # Notifications of a stream reach the message handler as well.
    handler = {} if transport == "stateless" else {"message_handler": news.message}
    async with connect(bridge, transport, query, **handler) as client:
        if transport == "stateless":
            listening = client.listen(
                tools_list_changed=True,
                resources_list_changed=True,
                prompts_list_changed=True,
                resource_subscriptions=uris,
            )
            async with listening as changes:
                following = asyncio.create_task(news.follow(changes))
                yield client, news
                following.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await following
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # deprecated without sessions
            # Only initialized clients get notifications; the ping is answered after that.
            await client.send_ping()
            for uri in uris:
                await client.subscribe_resource(uri)
            yield client, news
            for uri in uris:
                await client.unsubscribe_resource(uri)
