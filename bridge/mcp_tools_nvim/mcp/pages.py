"""The `…/list` methods; caches Neovim's definitions by revision, and their pages by protocol version."""

from __future__ import annotations

import asyncio
import base64
import binascii
import bisect
import json
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import mcp_types as types
from mcp import MCPError
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel import Server

from .. import jsonrpc
from ..errors import EditorError, EditorGoneError, NoAnswerError
from ..neovim.nvim import NvimEditor
from ..values import Kind, Listing, View
from .dispatch import RequestContext, dispatch_of, sdk_connection, view_of
from .results import editor_failure

PAGE_SIZE = 1000
"""Longer than most lists, since several clients do not follow cursors."""

DEADLINE_SECONDS = 2.0
"""Maximum wait for Neovim's list; then the cached one is served."""

LOADING_SECONDS = 0.02
"""Interval of requests for the list while Neovim is loading definitions."""

MAX_VIEWS = 16
"""Maximum cached lists for clients with different scopes."""

_CURSOR = "after:"
logger = logging.getLogger(__name__)


class CursorError(ValueError):
    """The cursor is not from this server."""


@dataclass(frozen=True, slots=True)
class Definitions:
    """All definitions of one revision, sorted by `names`; `pages` caches the pages."""

    revision: int
    items: list[dict[str, Any]]
    names: list[str]
    text: str
    pages: dict[Any, Any] = field(default_factory=dict, compare=False)


class DefinitionList:
    """The list of definitions of one kind.

    Args:
        editor: has the definitions.
        kind: kind of the definitions.
        key: member that they are sorted by.
        deadline: seconds to wait for Neovim.
        view: the client that sees the list; `Views` must then call `change`. None = the full list.

    Attributes:
        announced: text of the list that the client has, or was notified of.
    """

    def __init__(
        self,
        editor: NvimEditor,
        kind: Kind,
        key: str = "name",
        deadline: float = DEADLINE_SECONDS,
        view: View | None = None,
    ) -> None:
        self._editor = editor
        self._kind: Kind = kind
        self._key = key
        self._deadline = deadline
        self.current: Definitions | None = None
        self.stale = True
        self.announced: str | None = None
        self._view = view
        self._changes = 0
        if view is None:
            editor.on("changed", self._on_changed)

    async def refresh(self) -> Definitions:
        """Returns the current definitions, asking Neovim whether the cached ones are up to date.

        Raises:
            MCPError: Neovim returns no list and none is cached.
        """
        held, changes = self.current, self._changes
        try:
            async with asyncio.timeout(self._deadline):
                listing = await self._fetch(held)
                while listing.loading:
                    await asyncio.sleep(LOADING_SECONDS)
                    listing = await self._fetch(held)
        except (EditorError, TimeoutError) as failure:
            if not isinstance(failure, EditorGoneError | NoAnswerError | TimeoutError):
                logger.error("list of %s: %s", self._kind, failure)
            if held is not None:
                return held
            error = editor_failure(failure if isinstance(failure, EditorError) else NoAnswerError())
            raise MCPError(jsonrpc.INTERNAL_ERROR, error.message, {"code": str(error.code)}) from failure
        self.stale = self._changes != changes  # it may have changed since Neovim answered
        if listing.json is not None:
            self.current = held = self._read(listing.revision, listing.json)
            if self.announced is None:
                self.announced = held.text
        if held is None:
            raise MCPError(jsonrpc.INTERNAL_ERROR, f"Neovim has no list of {self._kind}")
        return held

    async def ensure(self) -> None:
        """Refreshes a missing or changed list; ignores failures."""
        if self.stale:
            try:
                await self.refresh()
            except MCPError as failure:
                logger.debug("no list of %s: %s", self._kind, failure)

    async def has_changed(self) -> bool:
        """Whether the list differs from the announced one; also True if Neovim does not answer."""
        before = self.announced
        await self.ensure()
        if self.stale or self.current is None:
            return True
        self.announced = self.current.text
        return self.announced != before

    def change(self) -> None:
        """Marks the list as possibly changed."""
        self.stale = True
        self._changes += 1

    def _on_changed(self, kind: str, revision: int) -> None:
        if kind == self._kind:
            self.change()

    def _fetch(self, held: Definitions | None) -> asyncio.Future[Listing]:
        return self._editor.list(self._kind, held.revision if held else None, self._view)

    def _read(self, revision: int, text: str) -> Definitions:
        if not text.isascii():
            text = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        items = [item for item in json.loads(text) if isinstance(item.get(self._key), str)]
        items.sort(key=lambda item: str(item[self._key]))
        return Definitions(revision, items, [item[self._key] for item in items], text)


class Views:
    """The most recently used lists of one kind for clients with different scopes."""

    def __init__(self, editor: NvimEditor, kind: Kind) -> None:
        self._editor = editor
        self._kind: Kind = kind
        self._listings: OrderedDict[View, DefinitionList] = OrderedDict()
        editor.on("changed", self._on_changed)

    def of(self, view: View) -> DefinitionList:
        """Returns the list of a client."""
        listing = self._listings.get(view)
        if listing is None:
            if len(self._listings) >= MAX_VIEWS:
                self._listings.popitem(last=False)
            listing = self._listings[view] = DefinitionList(self._editor, self._kind, view=view)
        else:
            self._listings.move_to_end(view)
        return listing

    def scoped(self) -> dict[View, DefinitionList]:
        """Returns the cached lists of clients with a scope."""
        return {
            view: listing
            for view, listing in self._listings.items()
            if view.scope is not None and view.scope.agent is None
        }

    def _on_changed(self, kind: str, revision: int) -> None:
        if kind == self._kind:
            for listing in self._listings.values():
                listing.change()


def page(definitions: Definitions, cursor: str | None) -> tuple[list[dict[str, Any]], str | None]:
    """Returns the definitions after `cursor`, and the cursor of the next page, if there is one.

    A cursor contains the name of the last definition of its page, so a change between two pages does not
    cause other definitions to be repeated or skipped.

    Raises:
        CursorError: the cursor is not from this server.
    """
    start = 0 if cursor is None else bisect.bisect_right(definitions.names, _read_cursor(cursor))
    end = start + PAGE_SIZE
    following = _write_cursor(definitions.names[end - 1]) if end < len(definitions.items) else None
    return definitions.items[start:end], following


def _write_cursor(name: str) -> str:
    return base64.urlsafe_b64encode((_CURSOR + name).encode()).decode().rstrip("=")


def _read_cursor(cursor: str) -> str:
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), b"-_", validate=True).decode()
    except (binascii.Error, ValueError) as failure:
        raise CursorError("Invalid cursor") from failure
    if not text.startswith(_CURSOR) or _write_cursor(text.removeprefix(_CURSOR)) != cursor:
        raise CursorError("Invalid cursor")
    return text.removeprefix(_CURSOR)


NOT_CACHEABLE: dict[str, Any] = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
"""Members that the stateless era requires in results that may change at any time."""

_CACHED_PAGES = 64
_MEMBERS = frozenset({"scheme", "mimeType", "tags"})


class FilterError(ValueError):
    """The filter is not valid; ignoring it would return more than the client requested."""


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
        member: member of the result that has them.
        key: member that they are sorted by.
        per_client: clients see different lists.

    Attributes:
        listing: all definitions.
        views: the clients' lists, if `per_client`.
        filterable: lists whose schemes a filter may name, including this one; empty = there are no filters.
    """

    def __init__(
        self, editor: NvimEditor, kind: Kind, member: str, key: str = "name", *, per_client: bool = False
    ) -> None:
        self.listing = DefinitionList(editor, kind, key)
        self.views = Views(editor, kind) if per_client else None
        self.filterable: tuple[Pages, ...] = ()
        self._member = member

    async def list(self, context: RequestContext, params: types.PaginatedRequestParams) -> dict[str, Any]:
        """Handles the method, with the definitions that `cached` has just refreshed."""
        listing = self._seen_by(context)
        definitions = listing.current or await listing.refresh()
        try:
            if self.has_filter(context.params):
                definitions = await self._filtered(definitions, context)
            items, following = page(definitions, params.cursor)
        except (CursorError, FilterError) as failure:
            raise MCPError(jsonrpc.INVALID_PARAMS, str(failure)) from None
        return NOT_CACHEABLE | {self._member: items} | ({"nextCursor": following} if following else {})

    async def cached(self, ctx: RequestContext, call_next: CallNext, cursor: str | None) -> HandlerResult:
        """Returns a cached page if Neovim confirms its revision, else a new one."""
        listing = self._seen_by(ctx)
        definitions = await listing.refresh()
        if self.has_filter(ctx.params):
            return await call_next(ctx)
        kept: dict[tuple[str, str | None], tuple[HandlerResult, bytes]] = definitions.pages
        key = (ctx.protocol_version, cursor)
        if key not in kept:
            result = await call_next(ctx)
            encoded = jsonrpc.dumps(result)
            if listing.current is definitions:  # otherwise the page may be of newer definitions
                if len(kept) >= _CACHED_PAGES:
                    kept.clear()
                kept[key] = (result, encoded)
        else:
            result, encoded = kept[key]
        dispatch_of(ctx).encoded = (encoded,)
        return result

    def has_filter(self, params: Mapping[str, Any] | None) -> bool:
        """Whether a request has a filter."""
        meta = (params or {}).get("_meta")
        return bool(self.filterable) and isinstance(meta, Mapping) and meta.get("filter") is not None

    async def _filtered(self, definitions: Definitions, context: RequestContext) -> Definitions:
        lists = [pages.listing.current or await pages.listing.refresh() for pages in self.filterable]
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
