"""The `…/list` methods: pages of definitions, each checked and shaped once per revision and version."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import mcp_types as types
from mcp import MCPError
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel import Server

from .. import jsonrpc
from ..neovim import Editor
from ..values import Kind
from .definitions import CursorError, DefinitionList, Definitions, ListingError, Views, page
from .request import RequestContext, dispatch_of, sdk_connection, view_of

NOT_CACHEABLE: dict[str, Any] = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
"""Members of lists and resources in the stateless era: they may change at any time."""

_CACHED_PAGES = 64
_MEMBERS = frozenset({"scheme", "mimeType", "tags"})


class FilterError(ValueError):
    """The filter is not valid; ignoring it would return more than was asked for."""


@dataclass(frozen=True, slots=True)
class Filter:
    """`_meta.filter` of a list of resources, `{scheme?, mimeType?, tags?}`; all members must match.

    It is part of the extension `ai.nimblebrain/host-resources`. Only tags are case-sensitive.
    """

    scheme: str | None = None
    mime_type: str | None = None
    tags: frozenset[str] = frozenset()

    def fits(self, uri: str, definition: dict[str, Any]) -> bool:
        """Whether the resource or template with this URI matches."""
        if self.scheme is not None and scheme_of(uri) != self.scheme:
            return False
        if self.mime_type is not None and _essence(definition.get("mimeType")) != self.mime_type:
            return False
        return self.tags <= set((definition.get("_meta") or {}).get("tags", ()))


def parse_filter(value: Any, schemes: Iterable[str]) -> Filter:
    """Returns the filter that a client sent.

    Args:
        value: the value from the client.
        schemes: existing schemes.

    Raises:
        FilterError: the value is not valid, or its scheme does not exist.
    """
    if not isinstance(value, dict):
        raise FilterError("filter must be an object")
    if unknown := sorted(value.keys() - _MEMBERS):
        raise FilterError(f"unknown filter member {unknown[0]!a}; valid ones are scheme, mimeType and tags")
    scheme, mime_type, tags = (value.get(name) for name in ("scheme", "mimeType", "tags"))
    for name, text in (("scheme", scheme), ("mimeType", mime_type)):
        if name in value and (not isinstance(text, str) or not text):
            raise FilterError(f"filter.{name} must be a string")
    if "tags" in value and not (isinstance(tags, list) and all(isinstance(tag, str) for tag in tags)):
        raise FilterError("filter.tags must be a list of strings")
    if scheme is not None and scheme.lower() not in (known := sorted(set(schemes))):
        raise FilterError(f"filter.scheme: unknown scheme {scheme!a}; available: {', '.join(known)}")
    return Filter(
        None if scheme is None else scheme.lower(),
        None if mime_type is None else _essence(mime_type),
        frozenset(tags or ()),
    )


def scheme_of(uri: str) -> str:
    """Returns the scheme of a URI or template."""
    return uri.partition(":")[0].lower()


def _essence(mime_type: Any) -> str | None:
    """Returns a media type without its parameters."""
    return mime_type.partition(";")[0].strip().lower() if isinstance(mime_type, str) else None


class Pages:
    """One list method.

    Args:
        editor: has the definitions.
        kind: kind of the definitions.
        member: member of the result that holds them.
        key: member that they are sorted by.
        per_client: clients see different lists.

    Attributes:
        listing: all definitions.
        views: lists of the clients, if they differ.
        combined: lists whose schemes a filter may name, this one included; empty if the list has no filter.
    """

    def __init__(
        self, editor: Editor, kind: Kind, member: str, key: str = "name", *, per_client: bool = False
    ) -> None:
        self.listing = DefinitionList(editor, kind, key)
        self.views = Views(editor, kind) if per_client else None
        self.combined: tuple[Pages, ...] = ()
        self._member = member

    async def list(self, context: RequestContext, params: types.PaginatedRequestParams) -> dict[str, Any]:
        """Returns a page of definitions, which `cached` has just refreshed."""
        listing = self._seen_by(context)
        definitions = listing.current or await _refresh(listing)
        try:
            if self.filters(context.params):
                definitions = await self._filtered(definitions, context)
            items, following = page(definitions, params.cursor)
        except (CursorError, FilterError) as failure:
            raise MCPError(jsonrpc.INVALID_PARAMS, str(failure)) from None
        return NOT_CACHEABLE | {self._member: items} | ({"nextCursor": following} if following else {})

    async def cached(self, ctx: RequestContext, call_next: CallNext, cursor: str | None) -> HandlerResult:
        """Returns a cached page if Neovim confirms its revision, else a new one."""
        listing = self._seen_by(ctx)
        definitions = await _refresh(listing)
        if self.filters(ctx.params):
            return await call_next(ctx)
        kept: dict[tuple[str, str | None], tuple[HandlerResult, bytes]] = definitions.pages
        key = (ctx.protocol_version, cursor)
        if key not in kept:
            result = await call_next(ctx)
            encoded = jsonrpc.dumps(result)
            if listing.current is definitions:  # else it may be a page of newer ones
                if len(kept) >= _CACHED_PAGES:
                    kept.clear()
                kept[key] = (result, encoded)
        else:
            result, encoded = kept[key]
        dispatch_of(ctx).encoded = (encoded,)
        return result

    def filters(self, params: Mapping[str, Any] | None) -> bool:
        """Whether a request has a filter."""
        meta = (params or {}).get("_meta")
        return bool(self.combined) and isinstance(meta, Mapping) and meta.get("filter") is not None

    async def _filtered(self, definitions: Definitions, context: RequestContext) -> Definitions:
        lists = [pages.listing.current or await _refresh(pages.listing) for pages in self.combined]
        schemes = {scheme_of(name) for known in lists for name in known.names}
        wanted = parse_filter((context.params or {})["_meta"]["filter"], schemes)
        pairs = zip(definitions.names, definitions.items, strict=True)
        kept = [(name, item) for name, item in pairs if wanted.fits(name, item)]
        return replace(definitions, names=[name for name, _ in kept], items=[item for _, item in kept])

    def _seen_by(self, context: RequestContext) -> DefinitionList:
        return self.listing if self.views is None else self.views.of(view_of(context))


class Lists:
    """All list methods of a server, with a cache."""

    def __init__(self, methods: dict[str, Pages]) -> None:
        self._methods = methods

    def install(self, server: Server[Any]) -> None:
        """Adds the handlers and the cache to a server."""
        for method, pages in self._methods.items():
            server.add_request_handler(method, types.PaginatedRequestParams, pages.list)
        server.middleware.append(self._cached)  # type: ignore[arg-type]  # any awaitable will do

    def _cached(self, ctx: RequestContext, call_next: CallNext) -> Awaitable[HandlerResult]:
        pages = self._methods.get(ctx.method)
        if pages is None:
            return call_next(ctx)  # not a coroutine itself, to save time on every call
        cursor = (ctx.params or {}).get("cursor")
        if not sdk_connection(ctx).initialize_accepted or not isinstance(cursor, str | None):
            return call_next(ctx)
        return pages.cached(ctx, call_next, cursor)


async def _refresh(listing: DefinitionList) -> Definitions:
    try:
        return await listing.refresh()
    except ListingError as failure:
        raise MCPError(jsonrpc.INTERNAL_ERROR, str(failure), {"code": str(failure.code)}) from failure
