"""What servers offer, as `register()` of the editor takes it.

Receives: items of their lists as they came. Sends: definitions under the names that they have here.
Does not know about: what a definition must be (the editor refuses those that are none), calls.
"""

from __future__ import annotations

import json
import re
from typing import Any

from .outcomes import unreserved
from .session import Session
from .spec import Mount

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
