"""What a client of the Python SDK hears of changes, by whichever way its transport has."""

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


class News:
    """`(what, time)` in order; what is a URI or a kind such as `tools`; time is that of `time.monotonic`."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, float]] = []
        self._arrived = asyncio.Event()

    def add(self, what: str) -> None:
        self.seen.append((what, time.monotonic()))
        self._arrived.set()

    async def wait_for(self, what: str, seconds: float = 5.0) -> float:
        """When it came for the first time; waits for it, within bounds."""
        async with asyncio.timeout(seconds):
            while True:
                for seen, at in self.seen:
                    if seen == what:
                        return at
                self._arrived.clear()
                await self._arrived.wait()

    async def message(self, message: Any) -> None:
        """The handler of a session's client."""
        if isinstance(message, types.ResourceUpdatedNotification):
            self.add(message.params.uri)
        elif isinstance(message, types.ToolListChangedNotification):
            self.add("tools")
        elif isinstance(message, types.ResourceListChangedNotification):
            self.add("resources")
        elif isinstance(message, types.PromptListChangedNotification):
            self.add("prompts")

    async def follow(self, changes: Any) -> None:
        """The loop over the stream of a client without a session."""
        async for event in changes:
            if isinstance(event, ResourceUpdated):
                self.add(event.uri)
            elif isinstance(event, ToolsListChanged):
                self.add("tools")
            elif isinstance(event, ResourcesListChanged):
                self.add("resources")
            elif isinstance(event, PromptsListChanged):
                self.add("prompts")


@contextlib.asynccontextmanager
async def follow(
    bridge: Bridge, transport: Transport, uris: Sequence[str] = (), query: str = ""
) -> AsyncIterator[tuple[Client, News]]:
    """A client that is subscribed to these resources, and to changes of the lists; `query` ends its URL."""
    news = News()
    # A stream's news reach the handler of messages as well.
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
            warnings.simplefilter("ignore")  # deprecated in the other era
            # News go to clients that have said they are initialized; its answer comes after that was heard.
            await client.send_ping()
            for uri in uris:
                await client.subscribe_resource(uri)
            yield client, news
            for uri in uris:
                await client.unsubscribe_resource(uri)
