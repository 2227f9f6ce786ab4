"""Definitions of what a mounted server exposes: read from its lists, registered with the editor."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Collection
from typing import Any

from mcp import MCPError
from mcp_types import METHOD_NOT_FOUND

from .loader import MountEditor
from .mount import Mount
from .outcomes import unreserved
from .session import LISTS, MAX_FAULT, MAX_FAULTS, Item, Session

logger = logging.getLogger(__name__)

_HINTS = {
    "readOnlyHint": "read_only",
    "destructiveHint": "destructive",
    "idempotentHint": "idempotent",
    "openWorldHint": "open_world",
}
_VARIABLE = re.compile(r"\{\+?([A-Za-z0-9_]+)\}")

Definition = dict[str, Any]


def tool(mount: Mount, item: dict[str, Any], _: Session) -> Definition:
    """Of an item of `tools/list`."""
    given = item.get("annotations") or {}
    hints = {ours: given[theirs] for theirs, ours in _HINTS.items() if isinstance(given.get(theirs), bool)}
    title = item.get("title") or given.get("title")
    definition = {
        "name": mount.public(item["name"]),
        "title": title,
        "description": _description(mount, item, title),
        "input_schema": _text(item["inputSchema"]),
        "output_schema": _text(item.get("outputSchema")),
        "annotations": hints,
        "timeout": mount.timeout,
        "hosts": _hosts(item),
    }
    return _given(definition)


def resource(mount: Mount, item: dict[str, Any], session: Session) -> Definition:
    """Of an item of `resources/list`."""
    place = {"uri": mount.public_uri(item["uri"]), "watch": session.subscribes or None}
    return _resource(mount, item, place)


def template(mount: Mount, item: dict[str, Any], session: Session) -> Definition:
    """Of an item of `resources/templates/list`."""
    text = item["uriTemplate"]
    names = sorted(set(_VARIABLE.findall(text))) if session.completes else []
    place = {"uri_template": mount.public_uri(text), "complete": names, "watch": session.subscribes or None}
    return _resource(mount, item, place)


def prompt(mount: Mount, item: dict[str, Any], session: Session) -> Definition:
    """Of an item of `prompts/list`."""
    args = []
    for given in item.get("arguments") or []:
        arg = {field: given.get(field) for field in ("name", "title", "description")}
        arg["required"] = given.get("required") is True
        arg["complete"] = True if session.completes else None
        args.append(_given(arg))
    return _given(
        {
            "name": mount.public(item["name"]),
            "title": item.get("title"),
            "description": _description(mount, item, item.get("title")),
            "args": args,
            "hosts": _hosts(item),
        }
    )


def _resource(mount: Mount, item: dict[str, Any], place: Definition) -> Definition:
    given = item.get("annotations") or {}
    annotations = {
        "audience": given.get("audience") or None,
        "priority": given.get("priority"),
        "last_modified": given.get("lastModified") or None,
    }
    definition = {
        **place,
        "name": mount.public(item["name"]),
        "title": item.get("title"),
        "description": _description(mount, item, item.get("title")),
        "mime_type": item.get("mimeType") or None,
        "annotations": _given(annotations),
        "hosts": _hosts(item),
    }
    return _given(definition)


def _description(mount: Mount, item: dict[str, Any], title: Any) -> str:
    text = item.get("description")
    return text if isinstance(text, str) and text.strip() else str(title or f"{item['name']} of {mount.name}")


def _hosts(item: dict[str, Any]) -> dict[str, Any] | None:
    extras = _given({"meta": unreserved(item).get("_meta"), "icons": item.get("icons") or None})
    return {"mcp": extras} if extras else None


def _text(schema: dict[str, Any] | None) -> str | None:
    """A schema as text, for Lua's numbers cannot hold every integer."""
    return None if schema is None else json.dumps(schema, ensure_ascii=False, separators=(",", ":"))


def _given(definition: Definition) -> Definition:
    """Without what is not there or empty."""
    return {field: value for field, value in definition.items() if value not in (None, {}, [])}


Found = dict[str, list[Definition]]
"""Kind (`tools`, `resources`, …) → """

Make = Callable[[Mount, dict[str, Any], Session], Definition]
_KINDS: dict[str, tuple[str, Make]] = {
    "tools/list": ("tools", tool),
    "resources/list": ("resources", resource),
    "resources/templates/list": ("templates", template),
    "prompts/list": ("prompts", prompt),
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


class Definitions:
    """The definitions of one mount."""

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
            made: dict[str, Definition] = {}
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

    async def _give(self, kind: str, made: list[Definition]) -> None:
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
