"""The `…/list` methods: pages of definitions, each checked and shaped once per revision and version."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import replace
from typing import Any

import mcp_types as types
from mcp import MCPError
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel import Server

from .. import jsonrpc
from ..neovim import Editor
from ..values import Kind
from . import filters
from .definitions import CursorError, Definitions, Listing, ListingError, Views, page
from .request import Context, connection_of, dispatch_of, view_of

UNCACHED: dict[str, Any] = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
"""What lists and reads of the stateless era say of themselves: they may change at any time."""

_CACHED_PAGES = 64


class Pages:
    """One list method.

    Args:
        editor: has the definitions.
        kind: which.
        member: where the result has them.
        key: what they are sorted by.
        narrowed: not every client sees the same ones.

    Attributes:
        listing: all of them.
        views: those that clients see, where that is not the same.
        together: lists of one whole, this one among them, whose schemes a filter may name; without any the
            list takes no filter.
    """

    def __init__(
        self, editor: Editor, kind: Kind, member: str, key: str = "name", *, narrowed: bool = False
    ) -> None:
        self.listing = Listing(editor, kind, key)
        self.views = Views(editor, kind) if narrowed else None
        self.together: tuple[Pages, ...] = ()
        self._member = member

    async def list(self, context: Context, params: types.PaginatedRequestParams) -> dict[str, Any]:
        """One page of definitions. `cached` has just refreshed them."""
        listing = self._seen_by(context)
        definitions = listing.current or await _refresh(listing)
        try:
            if self.filters(context.params):
                definitions = await self._filtered(definitions, context)
            items, following = page(definitions, params.cursor)
        except (CursorError, filters.FilterError) as failure:
            raise MCPError(jsonrpc.INVALID_PARAMS, str(failure)) from None
        return UNCACHED | {self._member: items} | ({"nextCursor": following} if following else {})

    async def cached(self, ctx: Context, call_next: CallNext, cursor: str | None) -> HandlerResult:
        """The page from before, if the editor says that its revision holds."""
        listing = self._seen_by(ctx)
        definitions = await _refresh(listing)
        if self.filters(ctx.params):
            return await call_next(ctx)
        kept: dict[tuple[str, str | None], tuple[HandlerResult, bytes]] = definitions.pages
        key = (ctx.protocol_version, cursor)
        if key not in kept:
            result = await call_next(ctx)
            encoded = jsonrpc.dumps(result)
            if listing.current is definitions:  # else it may be of the ones that came meanwhile
                if len(kept) >= _CACHED_PAGES:
                    kept.clear()
                kept[key] = (result, encoded)
        else:
            result, encoded = kept[key]
        dispatch_of(ctx).encoded = (encoded,)
        return result

    def filters(self, params: Mapping[str, Any] | None) -> bool:
        """Whether a request wants only some of the definitions."""
        meta = (params or {}).get("_meta")
        return bool(self.together) and isinstance(meta, Mapping) and meta.get("filter") is not None

    async def _filtered(self, definitions: Definitions, context: Context) -> Definitions:
        lists = [pages.listing.current or await _refresh(pages.listing) for pages in self.together]
        schemes = {filters.scheme_of(name) for known in lists for name in known.names}
        wanted = filters.read((context.params or {})["_meta"]["filter"], schemes)
        pairs = zip(definitions.names, definitions.items, strict=True)
        kept = [(name, item) for name, item in pairs if wanted.fits(name, item)]
        return replace(definitions, names=[name for name, _ in kept], items=[item for _, item in kept])

    def _seen_by(self, context: Context) -> Listing:
        return self.listing if self.views is None else self.views.of(view_of(context))


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


async def _refresh(listing: Listing) -> Definitions:
    try:
        return await listing.refresh()
    except ListingError as failure:
        raise MCPError(jsonrpc.INTERNAL_ERROR, str(failure), {"code": str(failure.code)}) from failure
