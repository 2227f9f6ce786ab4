"""The editor's definitions of one kind, kept as long as their revision holds, and cut into pages.

Receives: definitions as JSON text from the editor. Sends: pages of plain dicts.
Does not know about: what is defined, the SDK, HTTP.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import bisect
import json
import logging
from dataclasses import dataclass
from typing import Any

from ..editor import Editor
from ..errors import Code, EditorError, EditorGoneError
from ..model import Kind

PAGE_SIZE = 1000
"""Larger than most clients' whole lists: several do not follow cursors."""

DEADLINE_SECONDS = 2.0
"""How long a list may wait for an editor that does not answer, before the last known one is served."""

LOADING_SECONDS = 0.02
"""Between two looks at an editor that is loading what it offers, some hundredths of a second at a time."""

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
    """All definitions of one revision, sorted by `names`."""

    revision: int
    items: list[dict[str, Any]]
    names: list[str]
    text: str


class Listing:
    """Definitions of one kind; `key` is the member that they are sorted by, `deadline` is in seconds."""

    def __init__(
        self, editor: Editor, kind: Kind, key: str = "name", deadline: float = DEADLINE_SECONDS
    ) -> None:
        self._editor = editor
        self._kind: Kind = kind
        self._key = key
        self._deadline = deadline
        self.current: Definitions | None = None
        self.stale = True
        self._changes = 0
        editor.on_changed(self._on_changed)

    async def refresh(self) -> Definitions:
        """Asks the editor whether the kept list still holds.

        Raises:
            ListingError: the editor gave no answer and nothing is kept.
        """
        held, changes = self.current, self._changes
        try:
            async with asyncio.timeout(self._deadline):
                listing = await self._editor.list(self._kind, held.revision if held else None)
                while listing.loading:
                    await asyncio.sleep(LOADING_SECONDS)
                    listing = await self._editor.list(self._kind, held.revision if held else None)
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

    def _on_changed(self, kind: str, revision: int) -> None:
        if kind == self._kind:
            self.stale = True
            self._changes += 1

    def _read(self, revision: int, text: str) -> Definitions:
        if not text.isascii():
            text = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        items = [item for item in json.loads(text) if isinstance(item.get(self._key), str)]
        items.sort(key=lambda item: str(item[self._key]))
        return Definitions(revision, items, [item[self._key] for item in items], text)


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
