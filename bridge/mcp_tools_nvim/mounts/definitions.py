"""Reads the lists of a mounted server, converts the items to definitions and registers them with Neovim."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Collection
from typing import Any

from mcp import MCPError
from mcp_types import METHOD_NOT_FOUND

from ..neovim.nvim import NvimEditor
from .mount import Mount
from .outcomes import unreserved
from .session import LISTS, MAX_FAULT, MAX_FAULTS, Item, MountSession

logger = logging.getLogger(__name__)

_HINTS = {
    "readOnlyHint": "read_only",
    "destructiveHint": "destructive",
    "idempotentHint": "idempotent",
    "openWorldHint": "open_world",
}
_VARIABLE = re.compile(r"\{\+?([A-Za-z0-9_]+)\}")

Definition = dict[str, Any]


def tool_definition(mount: Mount, item: dict[str, Any], _: MountSession) -> Definition:
    """Converts an item of `tools/list`."""
    given = item.get("annotations") or {}
    hints = {ours: given[theirs] for theirs, ours in _HINTS.items() if isinstance(given.get(theirs), bool)}
    title = item.get("title") or given.get("title")
    definition = {
        "name": mount.public_name(item["name"]),
        "title": title,
        "description": _description(mount, item, title),
        "input_schema": _json_text(item["inputSchema"]),
        "output_schema": _json_text(item.get("outputSchema")),
        "annotations": hints,
        "timeout": mount.timeout,
        "callers": _callers(item),
    }
    return _present(definition)


def resource_definition(mount: Mount, item: dict[str, Any], session: MountSession) -> Definition:
    """Converts an item of `resources/list`."""
    place = {"uri": mount.public_uri(item["uri"]), "watch": session.subscribes or None}
    return _resource_fields(mount, item, place)


def template_definition(mount: Mount, item: dict[str, Any], session: MountSession) -> Definition:
    """Converts an item of `resources/templates/list`."""
    text = item["uriTemplate"]
    names = sorted(set(_VARIABLE.findall(text))) if session.completes else []
    place = {"uri_template": mount.public_uri(text), "complete": names, "watch": session.subscribes or None}
    return _resource_fields(mount, item, place)


def prompt_definition(mount: Mount, item: dict[str, Any], session: MountSession) -> Definition:
    """Converts an item of `prompts/list`."""
    args = []
    for given in item.get("arguments") or []:
        arg = {field: given.get(field) for field in ("name", "title", "description")}
        arg["required"] = given.get("required") is True
        arg["complete"] = True if session.completes else None
        args.append(_present(arg))
    return _present(
        {
            "name": mount.public_name(item["name"]),
            "title": item.get("title"),
            "description": _description(mount, item, item.get("title")),
            "args": args,
            "callers": _callers(item),
        }
    )


def _resource_fields(mount: Mount, item: dict[str, Any], place: Definition) -> Definition:
    given = item.get("annotations") or {}
    annotations = {
        "audience": given.get("audience") or None,
        "priority": given.get("priority"),
        "last_modified": given.get("lastModified") or None,
    }
    definition = {
        **place,
        "name": mount.public_name(item["name"]),
        "title": item.get("title"),
        "description": _description(mount, item, item.get("title")),
        "mime_type": item.get("mimeType") or None,
        "annotations": _present(annotations),
        "callers": _callers(item),
    }
    return _present(definition)


def _description(mount: Mount, item: dict[str, Any], title: Any) -> str:
    text = item.get("description")
    return text if isinstance(text, str) and text.strip() else str(title or f"{item['name']} of {mount.name}")


def _callers(item: dict[str, Any]) -> dict[str, Any] | None:
    extras = _present({"meta": unreserved(item).get("_meta"), "icons": item.get("icons") or None})
    return {"mcp": extras} if extras else None


def _json_text(schema: dict[str, Any] | None) -> str | None:
    """Returns a schema as JSON text, since Lua's numbers cannot represent every integer."""
    return None if schema is None else json.dumps(schema, ensure_ascii=False, separators=(",", ":"))


def _present(definition: Definition) -> Definition:
    """Returns a definition without null and empty fields."""
    return {field: value for field, value in definition.items() if value not in (None, {}, [])}


Found = dict[str, list[Definition]]
"""Kind (`tools`, `resources`, …) → definitions."""

Make = Callable[[Mount, dict[str, Any], MountSession], Definition]
_KINDS: dict[str, tuple[str, Make]] = {
    "tools/list": ("tools", tool_definition),
    "resources/list": ("resources", resource_definition),
    "resources/templates/list": ("templates", template_definition),
    "prompts/list": ("prompts", prompt_definition),
}
MAX_PIECE = 16 * 1024
"""Characters of definitions that Neovim registers at a time, in a few ms; a single one may be longer."""


def _pieces(texts: list[str]) -> list[str]:
    """Splits a list of JSON texts into JSON lists of at most MAX_PIECE characters; at least one."""
    pieces: list[list[str]] = [[]]
    size = 0
    for text in texts:
        if pieces[-1] and size + len(text) > MAX_PIECE:
            pieces.append([])
            size = 0
        pieces[-1].append(text)
        size += len(text)
    return [f"[{','.join(piece)}]" for piece in pieces]


class MountDefinitions:
    """The definitions of one mount."""

    def __init__(self, mount: Mount, editor: NvimEditor) -> None:
        self._mount = mount
        self._editor = editor
        self._registered: dict[str, list[str]] = {}
        self._faults: dict[str, list[str]] = {}
        self._refused: dict[str, list[str]] = {}
        self.closed = False
        """The mount is removed; nothing more is registered."""

    @property
    def faults(self) -> list[str]:
        """Ignored items and the reasons."""
        both = [*self._faults.values(), *self._refused.values()]
        all_ = [self._mount.clean(fault)[:MAX_FAULT] for faults in both for fault in faults[: MAX_FAULTS + 1]]
        left = sum(len(faults) for faults in both) - len(all_)
        return [*all_, f"and {left} more"] if left else all_

    async def read(self, session: MountSession, lists: Collection[str] = tuple(LISTS)) -> Found:
        """Reads these lists from the server.

        Args:
            session: The session with the server.
            lists: Methods of the lists.

        Returns:
            The definitions of each kind, for `register`.

        Raises:
            MCPError: The server refuses one of the lists.
        """
        found: Found = {}
        for method, (kind, make) in _KINDS.items():
            if method not in lists:
                continue
            items: list[Item] = []
            faults: list[str] = []
            try:
                if session.supports(method):
                    items, faults = await session.list(method)
            except MCPError as fault:
                if fault.error.code != METHOD_NOT_FOUND:
                    raise
            made: dict[str, Definition] = {}
            for item in items:
                definition = make(self._mount, item, session)
                key = definition.get("uri") or definition.get("uri_template") or definition["name"]
                if made.setdefault(key, definition) is not definition:
                    faults.append(f"{method}: {key[:80]}: duplicate; the first one is used")
            self._faults[method] = faults
            found[kind] = list(made.values())
        return found

    async def register(self, found: Found) -> None:
        """Registers definitions with Neovim, unless they have not changed.

        Raises:
            EditorError: Neovim did not register them; the next call tries again.
        """
        for kind, made in found.items():
            await self._register(kind, made)

    async def _register(self, kind: str, made: list[Definition]) -> None:
        texts = [json.dumps(definition, ensure_ascii=False) for definition in made]
        if self._registered.get(kind) == texts:
            return
        self._registered.pop(kind, None)
        pieces = _pieces(texts)
        refused: list[str] = []
        for number, piece in enumerate(pieces, 1):
            if self.closed:
                return
            bounds = {"first": number == 1, "last": number == len(pieces)}
            refused += await self._editor.provide(self._mount.name, kind, piece, **bounds)
        self._refused[kind], self._registered[kind] = refused, texts
        for fault in self.faults:
            logger.warning("mount %s: ignored: %s", self._mount.name, fault)
