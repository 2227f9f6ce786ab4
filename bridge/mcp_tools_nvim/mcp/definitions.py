"""The editor's definitions of one kind, kept as long as their revision holds, and cut into pages."""

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
from ..values import Kind, View
from ..values import Listing as Answer

PAGE_SIZE = 1000
"""Larger than most clients' whole lists: several do not follow cursors."""

DEADLINE_SECONDS = 2.0
"""How long a list may wait for an editor that does not answer, before the last known one is served."""

LOADING_SECONDS = 0.02
"""Between two looks at an editor that is loading what it offers, some hundredths of a second at a time."""

MAX_VIEWS = 16
"""Lists of tools as different clients see them that are kept; each is as large as what its client may see."""

_CURSOR = "after:"
logger = logging.getLogger(__name__)


class ListingError(Exception):
    """There is no list: the editor does not answer, and none was kept."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code


class CursorError(ValueError):
    """A cursor that was not given out here."""


@dataclass(frozen=True, slots=True)
class Definitions:
    """All definitions of one revision, sorted by `names`; `pages` is for whoever makes something of them."""

    revision: int
    items: list[dict[str, Any]]
    names: list[str]
    text: str
    pages: dict[Any, Any] = field(default_factory=dict, compare=False)


class Listing:
    """Definitions of one kind.

    Args:
        editor: has them.
        kind: which.
        key: the member that they are sorted by.
        deadline: seconds.
        view: who sees them; whoever makes a listing for one tells it of changes by `change`.

    Attributes:
        told: the text that whoever sees it knows of, or has been told that it is another now.
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
        self.told: str | None = None
        self._view = view
        self._changes = 0
        if view is None:
            editor.on_changed(self._on_changed)

    async def refresh(self) -> Definitions:
        """Asks the editor whether the kept list still holds.

        Raises:
            ListingError: the editor gave no answer and nothing is kept.
        """
        held, changes = self.current, self._changes
        try:
            async with asyncio.timeout(self._deadline):
                listing = await self._ask(held)
                while listing.loading:
                    await asyncio.sleep(LOADING_SECONDS)
                    listing = await self._ask(held)
        except (EditorError, TimeoutError) as failure:
            if held is not None:
                return held
            if isinstance(failure, EditorGoneError):
                raise ListingError(Code.EDITOR_GONE, "Neovim is gone") from failure
            raise ListingError(
                Code.EDITOR_BLOCKED, "Neovim does not answer; look for a prompt in it"
            ) from failure
        self.stale = self._changes != changes  # it may have changed since the editor answered
        if listing.json is not None:
            self.current = held = self._read(listing.revision, listing.json)
            if self.told is None:
                self.told = held.text
        if held is None:
            raise ListingError(Code.EDITOR_GONE, f"Neovim has no list of {self._kind}")
        return held

    async def ensure(self) -> None:
        """Asks the editor only when nothing is kept or a change was announced; keeps quiet about failures."""
        if self.stale:
            try:
                await self.refresh()
            except ListingError as failure:
                logger.debug("no list of %s: %s", self._kind, failure)

    async def is_news(self) -> bool:
        """Whether it is another list than the one that was told of; True as well when nobody can know."""
        before = self.told
        await self.ensure()
        if self.stale or self.current is None:
            return True
        self.told = self.current.text
        return self.told != before

    def change(self) -> None:
        """It may be another one now."""
        self.stale = True
        self._changes += 1

    def _on_changed(self, kind: str, revision: int) -> None:
        if kind == self._kind:
            self.change()

    def _ask(self, held: Definitions | None) -> asyncio.Future[Answer]:
        return self._editor.list(self._kind, held.revision if held else None, self._view)

    def _read(self, revision: int, text: str) -> Definitions:
        if not text.isascii():
            text = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        items = [item for item in json.loads(text) if isinstance(item.get(self._key), str)]
        items.sort(key=lambda item: str(item[self._key]))
        return Definitions(revision, items, [item[self._key] for item in items], text)


class Views:
    """One list as different clients see it: the listings that were used last."""

    def __init__(self, editor: Editor, kind: Kind) -> None:
        self._editor = editor
        self._kind: Kind = kind
        self._listings: OrderedDict[View, Listing] = OrderedDict()
        editor.on_changed(self._on_changed)

    def of(self, view: View) -> Listing:
        """The list of a client."""
        listing = self._listings.get(view)
        if listing is None:
            if len(self._listings) >= MAX_VIEWS:
                self._listings.popitem(last=False)
            listing = self._listings[view] = Listing(self._editor, self._kind, view=view)
        else:
            self._listings.move_to_end(view)
        return listing

    def scoped(self) -> dict[View, Listing]:
        """Those that are kept of clients who asked for less than there is."""
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
    """The definitions after `cursor` and the cursor of the next page, if there is one.

    A cursor names the last definition of its page, so that changes between pages repeat or lose no other one.

    Raises:
        CursorError: the cursor was not given out here.
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
