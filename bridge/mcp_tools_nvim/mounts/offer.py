"""What one server offers: looked at, handed to the editor when it is another, and what was wrong with it.

Receives: a session; which lists have changed. Sends: definitions to the editor.
Does not know about: calls, how long a session lasts.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection
from typing import Any

from mcp import MCPError
from mcp_types import METHOD_NOT_FOUND

from . import definitions
from .dispatcher import LISTS, MAX_FAULT, MAX_FAULTS, Item
from .door import MountEditor
from .session import Session
from .spec import Mount

logger = logging.getLogger(__name__)

Found = dict[str, list[definitions.Definition]]
"""Kind (`tools`, `resources`, …) → definitions."""

Make = Callable[[Mount, dict[str, Any], Session], definitions.Definition]
_KINDS: dict[str, tuple[str, Make]] = {
    "tools/list": ("tools", definitions.tool),
    "resources/list": ("resources", definitions.resource),
    "resources/templates/list": ("templates", definitions.template),
    "prompts/list": ("prompts", definitions.prompt),
}
MAX_PIECE = 16 * 1024
"""Characters of definitions that the editor takes in at a stretch, in some ms; one alone may have more."""


def _pieces(texts: list[str]) -> list[str]:
    """The JSON text of a list, as those of lists that together are it; one at least."""
    pieces: list[list[str]] = [[]]
    size = 0
    for text in texts:
        if pieces[-1] and size + len(text) > MAX_PIECE:
            pieces.append([])
            size = 0
        pieces[-1].append(text)
        size += len(text)
    return [f"[{','.join(piece)}]" for piece in pieces]


class Offer:
    """See the head of this file."""

    def __init__(self, mount: Mount, editor: MountEditor) -> None:
        self._mount = mount
        self._editor = editor
        self._given: dict[str, list[str]] = {}
        self._faults: dict[str, list[str]] = {}
        self._refused: dict[str, list[str]] = {}
        self.closed = False
        """Nothing is offered any more."""

    @property
    def faults(self) -> list[str]:
        """What is left out, and why."""
        both = [*self._faults.values(), *self._refused.values()]
        all_ = [self._mount.clean(fault)[:MAX_FAULT] for faults in both for fault in faults[: MAX_FAULTS + 1]]
        left = sum(len(faults) for faults in both) - len(all_)
        return [*all_, f"and {left} more"] if left else all_

    async def read(self, session: Session, lists: Collection[str] = tuple(LISTS)) -> Found:
        """Asks the server for these lists.

        Args:
            session: With the server.
            lists: Methods of the lists.

        Returns:
            The definitions of each kind, for `give`.

        Raises:
            MCPError: The server refuses one.
        """
        found: Found = {}
        for method, (kind, make) in _KINDS.items():
            if method not in lists:
                continue
            items: list[Item] = []
            faults: list[str] = []
            try:
                if session.offers(method):
                    items, faults = await session.list(method)
            except MCPError as fault:
                if fault.error.code != METHOD_NOT_FOUND:
                    raise
            made: dict[str, definitions.Definition] = {}
            for item in items:
                definition = make(self._mount, item, session)
                key = definition.get("uri") or definition.get("uri_template") or definition["name"]
                if made.setdefault(key, definition) is not definition:
                    faults.append(f"{method}: {key[:80]}: is there twice; the first counts")
            self._faults[method] = faults
            found[kind] = list(made.values())
        return found

    async def give(self, found: Found) -> None:
        """Registers definitions with the editor, unless they are the registered ones.

        Raises:
            EditorError: The editor did not take them; what it has not taken is given again next time.
        """
        for kind, made in found.items():
            await self._give(kind, made)

    async def _give(self, kind: str, made: list[definitions.Definition]) -> None:
        texts = [json.dumps(definition, ensure_ascii=False) for definition in made]
        if self._given.get(kind) == texts:
            return
        self._given.pop(kind, None)
        pieces = _pieces(texts)
        refused: list[str] = []
        for number, piece in enumerate(pieces, 1):
            if self.closed:
                return
            bounds = {"first": number == 1, "last": number == len(pieces)}
            refused += await self._editor.provide(self._mount.name, kind, piece, **bounds)
        self._refused[kind], self._given[kind] = refused, texts
        for fault in self.faults:
            logger.warning("mount %s: left out: %s", self._mount.name, fault)
