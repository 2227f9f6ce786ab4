"""A client of the official Python SDK whose files servers may read (`ai.nimblebrain/host-resources`)."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mcp import MCPError, types
from mcp.client.session import ClientSession
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from .bridge import Bridge, Transport, closing_quietly, http_client

EXTENSION = "ai.nimblebrain/host-resources"
READ = "ai.nimblebrain/resources/read"
LIST = "ai.nimblebrain/resources/list"
DECLARED: dict[str, Any] = {
    "read": {"enabled": True, "range": False, "maxSize": 10 * 1024 * 1024},
    "list": {"enabled": True},
    "write": {"enabled": False},
    "schemes": ["files"],
}
"""The declaration of the extension's authors."""

NOT_FOUND, RATE_LIMITED, TOO_LARGE, INVALID = -32002, -32004, -32005, -32602

Answer = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]


@dataclass
class File:
    """A file with text or bytes."""

    content: str | bytes
    mime_type: str = "text/plain"
    tags: tuple[str, ...] = ()


@dataclass
class Host:
    """The client's side.

    Attributes:
        files: by their URI.
        declared: the capability.
        place: key of the capabilities, `extensions` or `experimental`.
        answer: replaces reading and listing `files`.
        asked: every request of the server.
    """

    files: dict[str, File] = field(default_factory=dict)
    declared: dict[str, Any] = field(default_factory=lambda: DECLARED)
    place: str = "extensions"
    answer: Answer | None = None
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    async def request(self, method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
        """Answers a request of the server."""
        given = dict(params or {})
        self.asked.append((method, given))
        if self.answer is not None:
            return await self.answer(method, given)
        return self.read(given["uri"]) if method == READ else self.list(given)

    def read(self, uri: str) -> dict[str, Any]:
        file = self.files.get(uri)
        if file is None:
            raise MCPError(NOT_FOUND, "Resource not found", {"uri": uri})
        shown = {"uri": uri, "mimeType": file.mime_type}
        if isinstance(file.content, bytes):
            return {"contents": [shown | {"blob": base64.b64encode(file.content).decode()}]}
        return {"contents": [shown | {"text": file.content}]}

    def list(self, params: dict[str, Any]) -> dict[str, Any]:
        """The files that match the filter."""
        wanted = params.get("_meta", {}).get("filter", {})
        if wanted.get("scheme", "files") != "files":
            raise MCPError(INVALID, "Unsupported URI scheme", {"supported": ["files"]})
        return {
            "resources": [
                {"uri": uri, "name": uri.partition("//")[2], "mimeType": file.mime_type}
                for uri, file in self.files.items()
                if wanted.get("mimeType") in (None, file.mime_type)
                and set(wanted.get("tags", ())) <= set(file.tags)
            ]
        }


class HostSession(ClientSession):
    """The SDK's session, with two more methods."""

    def __init__(self, host: Host, *streams: Any) -> None:
        super().__init__(*streams, extensions=_at(host, "extensions"))
        self.host = host

    def _build_capabilities(self, version: str) -> types.ClientCapabilities:
        built = super()._build_capabilities(version)
        return built.model_copy(update={"experimental": _at(self.host, "experimental")})

    async def _on_request(self, dctx: Any, method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
        if method in (READ, LIST):
            return await self.host.request(method, params)
        return await super()._on_request(dctx, method, params)


@contextlib.asynccontextmanager
async def hosted(bridge: Bridge, transport: Transport, host: Host) -> AsyncIterator[HostSession]:
    """A session over `transport`."""
    async with contextlib.AsyncExitStack() as stack:
        closing = stack.enter_context(closing_quietly())
        if transport == "sse":
            source = sse_client(f"{bridge.url}/sse", bridge.headers, httpx_client_factory=http_client)
        else:
            http = http_client(bridge.headers)
            await stack.enter_async_context(http)
            source = streamable_http_client(f"{bridge.url}/mcp", http_client=http)
        streams = await stack.enter_async_context(source)
        session = await stack.enter_async_context(HostSession(host, *streams))
        await session.initialize()
        yield session
        closing.set()


def _at(host: Host, place: str) -> dict[str, dict[str, Any]] | None:
    return {EXTENSION: host.declared} if host.place == place else None
