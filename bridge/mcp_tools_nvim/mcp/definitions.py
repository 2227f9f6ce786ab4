"""Neovim's definitions of one kind, cached by revision and split into pages."""

from __future__ import annotations

import asyncio
import base64
import binascii
import bisect
import json
import logging
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

from ..errors import Code, EditorError, EditorGoneError
from ..neovim import Editor
from ..values import Kind, Listing, View

PAGE_SIZE = 1000
"""Longer than most lists: several clients do not follow cursors."""

DEADLINE_SECONDS = 2.0
"""Maximum wait for Neovim's list, before the cached one is served."""

LOADING_SECONDS = 0.02
"""Interval of requests while Neovim is loading definitions."""

MAX_VIEWS = 16
"""Maximum cached lists for clients with different scopes."""

_CURSOR = "after:"
logger = logging.getLogger(__name__)


class ListingError(Exception):
    """Neovim does not answer, and no list is cached."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code


class CursorError(ValueError):
    """The cursor is not one of ours."""


@dataclass(frozen=True, slots=True)
class Definitions:
    """All definitions of one revision, sorted by `names`; `pages` is a cache for the list method."""

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
        view: the client that sees the list; its owner must then call `change`. None = the full list.

    Attributes:
        announced: text of the list that the client knows, or was notified of.
    """

    def __init__(
        self,
        editor: Editor,
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
            editor.on_changed(self._on_changed)

    async def refresh(self) -> Definitions:
        """Returns the current definitions, asking Neovim whether the cached ones are up to date.

        Raises:
            ListingError: Neovim does not answer and no list is cached.
        """
        held, changes = self.current, self._changes
        try:
            async with asyncio.timeout(self._deadline):
                listing = await self._fetch(held)
                while listing.loading:
                    await asyncio.sleep(LOADING_SECONDS)
                    listing = await self._fetch(held)
        except (EditorError, TimeoutError) as failure:
            if held is not None:
                return held
            if isinstance(failure, EditorGoneError):
                raise ListingError(Code.EDITOR_GONE, "Neovim has exited") from failure
            raise ListingError(
                Code.EDITOR_BLOCKED, "Neovim does not answer; look for a prompt in it"
            ) from failure
        self.stale = self._changes != changes  # it may have changed since Neovim answered
        if listing.json is not None:
            self.current = held = self._read(listing.revision, listing.json)
            if self.announced is None:
                self.announced = held.text
        if held is None:
            raise ListingError(Code.EDITOR_GONE, f"Neovim has no list of {self._kind}")
        return held

    async def ensure(self) -> None:
        """Refreshes a missing or changed list; ignores failures."""
        if self.stale:
            try:
                await self.refresh()
            except ListingError as failure:
                logger.debug("no list of %s: %s", self._kind, failure)

    async def has_changed(self) -> bool:
        """Whether the list differs from the announced one; also True when that is unknown."""
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

    def __init__(self, editor: Editor, kind: Kind) -> None:
        self._editor = editor
        self._kind: Kind = kind
        self._listings: OrderedDict[View, DefinitionList] = OrderedDict()
        editor.on_changed(self._on_changed)

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

    A cursor contains the name of the last definition of its page, so that a change between two pages
    neither repeats nor skips other definitions.

    Raises:
        CursorError: the cursor is not one of ours.
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
