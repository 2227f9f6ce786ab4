"""The `…/list` methods: pages of definitions, each checked and shaped once per revision and version.

Receives: list requests; definitions from `definitions.py`. Sends: pages, repeated as bytes while nothing
changes and nobody filters. Does not know about: what is defined.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import replace
from typing import Any

import mcp_types as types
from mcp import MCPError
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel import Server

from .. import jsonrpc
from ..editor import Editor
from ..model import Kind
from . import filters
from .definitions import CursorError, Definitions, Listing, ListingError, page
from .request import Context, connection_of, dispatch_of

UNCACHED: dict[str, Any] = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
"""What lists and reads of the stateless era say of themselves: they may change at any time."""

_CACHED_PAGES = 64


class Pages:
    """One list method; `member` is where its result has the definitions, `key` what they are sorted by.

    Attributes:
        together: lists of one whole, this one among them, whose schemes a filter may name; without any the
            list takes no filter.
    """

    def __init__(self, editor: Editor, kind: Kind, member: str, key: str = "name") -> None:
        self.listing = Listing(editor, kind, key)
        self.together: tuple[Pages, ...] = ()
        self._member = member
        self._cached: dict[tuple[str, str | None], tuple[HandlerResult, bytes]] = {}
        self._cached_of: Definitions | None = None

    async def list(self, context: Context, params: types.PaginatedRequestParams) -> dict[str, Any]:
        """One page of definitions. `cached` has just refreshed them."""
        definitions = self.listing.current or await self._refresh()
        try:
            if self.filters(context.params):
                definitions = await self._filtered(definitions, context)
            items, following = page(definitions, params.cursor)
        except (CursorError, filters.FilterError) as failure:
            raise MCPError(jsonrpc.INVALID_PARAMS, str(failure)) from None
        return UNCACHED | {self._member: items} | ({"nextCursor": following} if following else {})

    async def cached(self, ctx: Context, call_next: CallNext, cursor: str | None) -> HandlerResult:
        """The page from before, if the editor says that its revision holds."""
        definitions = await self._refresh()
        if self.filters(ctx.params):
            return await call_next(ctx)
        if definitions is not self._cached_of or len(self._cached) >= _CACHED_PAGES:
            self._cached, self._cached_of = {}, definitions
        key = (ctx.protocol_version, cursor)
        if key not in self._cached:
            result = await call_next(ctx)
            self._cached[key] = (result, jsonrpc.dumps(result))
        result, encoded = self._cached[key]
        dispatch_of(ctx).encoded = (encoded,)
        return result

    def filters(self, params: Mapping[str, Any] | None) -> bool:
        """Whether a request wants only some of the definitions."""
        meta = (params or {}).get("_meta")
        return bool(self.together) and isinstance(meta, Mapping) and meta.get("filter") is not None

    async def _filtered(self, definitions: Definitions, context: Context) -> Definitions:
        lists = [pages.listing.current or await pages._refresh() for pages in self.together]
        schemes = {filters.scheme_of(name) for known in lists for name in known.names}
        wanted = filters.read((context.params or {})["_meta"]["filter"], schemes)
        pairs = zip(definitions.names, definitions.items, strict=True)
        kept = [(name, item) for name, item in pairs if wanted.fits(name, item)]
        return replace(definitions, names=[name for name, _ in kept], items=[item for _, item in kept])

    async def _refresh(self) -> Definitions:
        try:
            return await self.listing.refresh()
        except ListingError as failure:
            raise MCPError(jsonrpc.INTERNAL_ERROR, str(failure), {"code": str(failure.code)}) from failure


class Lists:
    """All list methods of a server."""

    def __init__(self, methods: dict[str, Pages]) -> None:
        self._methods = methods

    def install(self, server: Server[Any]) -> None:
        """Adds the handlers, and the cache before them."""
        for method, pages in self._methods.items():
            server.add_request_handler(method, types.PaginatedRequestParams, pages.list)
        server.middleware.append(self._cached)  # type: ignore[arg-type]  # any awaitable will do

    def _cached(self, ctx: Context, call_next: CallNext) -> Awaitable[HandlerResult]:
        pages = self._methods.get(ctx.method)
        if pages is None:
            return call_next(ctx)  # no coroutine of its own: every call passes here
        cursor = (ctx.params or {}).get("cursor")
        if not connection_of(ctx).initialize_accepted or not isinstance(cursor, str | None):
            return call_next(ctx)
        return pages.cached(ctx, call_next, cursor)
