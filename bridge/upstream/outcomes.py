"""What servers answer, in the form in which the editor takes it (lua/mcp-tools/call/remote.lua).

Receives: results as they came, checked against their revision. Sends: outcomes, plain values.
Does not know about: connections, calls.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

from .spec import Mount

Outcome = dict[str, Any]

_KEPT = ("annotations", "_meta", "icons")
"""Of a content block, what the editor passes on as it is."""


def failed(code: str, message: str) -> Outcome:
    """An error of a call."""
    return {"kind": "error", "code": code, "message": message}


def too_large(size: int, limit: int, option: str) -> Outcome:
    """More than is passed on."""
    return failed("too_large", f"the result has {size} bytes, the limit is {limit} (option limits.{option})")


def plain_text(raw: dict[str, Any], limit: int) -> str | None:
    """What of `tools/call` is nothing but one text, as most results are."""
    content: list[dict[str, Any]] = raw.get("content") or []
    if len(content) == 1 and not raw.keys() & {"structuredContent", "_meta"} and not raw.get("isError"):
        block = content[0]
        if block.keys() == {"type", "text"} and block["type"] == "text" and len(block["text"]) <= limit:
            text: str = block["text"]
            return text
    return None


def of_tool(mount: Mount, raw: dict[str, Any], limit: int) -> Outcome:
    """Of `tools/call`."""
    blocks, size = _blocks(mount, raw.get("content") or [])
    outcome: Outcome = {"kind": "content", "blocks": blocks}
    if isinstance(raw.get("structuredContent"), dict):
        outcome["structured"] = json.dumps(raw["structuredContent"], ensure_ascii=False)
    if raw.get("isError"):
        outcome["is_error"] = True
    if raw.get("_meta"):
        outcome["meta"] = json.dumps(raw["_meta"], ensure_ascii=False)
    size += len(outcome.get("structured", "")) + len(outcome.get("meta", ""))
    return too_large(size, limit, "tool_result") if size > limit else outcome


def of_resource(mount: Mount, raw: dict[str, Any], limit: int) -> Outcome:
    """Of `resources/read`."""
    contents, size = [], 0
    for item in raw.get("contents") or []:
        contents.append(_contents(mount, item))
        size += len(item.get("text") or item.get("blob") or "")
    if size > limit:
        return too_large(size, limit, "resource")
    return {"kind": "contents", "contents": contents}


def of_prompt(mount: Mount, raw: dict[str, Any], limit: int) -> Outcome:
    """Of `prompts/get`."""
    messages, size = [], 0
    for message in raw.get("messages") or []:
        blocks, bytes_ = _blocks(mount, [message["content"]])
        size += bytes_
        messages.append({"role": message["role"], "block": blocks[0]})
    if size > limit:
        return too_large(size, limit, "tool_result")
    outcome: Outcome = {"kind": "messages", "messages": messages}
    if raw.get("description"):
        outcome["description"] = raw["description"]
    return outcome


def of_completion(_: Mount, raw: dict[str, Any], __: int) -> Outcome:
    """Of `completion/complete`."""
    given = raw["completion"]
    values = {"values": given.get("values") or [], "has_more": bool(given.get("hasMore"))}
    if isinstance(given.get("total"), int):
        values["total"] = given["total"]
    return {"kind": "json", "text": json.dumps(values, ensure_ascii=False)}


def _blocks(mount: Mount, items: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], int]:
    """Content blocks, and the bytes that count for the limit."""
    blocks, size = [], 0
    for item in items:
        kind = item.get("type")
        if kind == "text":
            blocks.append({"type": "text", "text": item["text"]})
            size += len(item["text"])
        elif kind in ("image", "audio"):
            blocks.append({"type": kind, "bytes": _bytes(item["data"]), "mime_type": item["mimeType"]})
            size += len(item["data"])
        elif kind == "resource":
            blocks.append({"type": "resource", **_contents(mount, item["resource"])})
            size += len(item["resource"].get("text") or item["resource"].get("blob") or "")
        elif kind == "resource_link":
            link = _link(mount, item)
            blocks.append(link)
            size += sum(len(value) for value in link.values() if isinstance(value, str))
        else:
            text = json.dumps(item, ensure_ascii=False)
            blocks.append({"type": "text", "text": text})
            size += len(text)
            continue
        if kept := {field: item[field] for field in _KEPT if item.get(field)}:
            blocks[-1]["extras"] = json.dumps(kept, ensure_ascii=False)
    return blocks, size


def _contents(mount: Mount, item: dict[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {"uri": mount.public_uri(item["uri"])}
    if item.get("mimeType"):
        out["mime_type"] = item["mimeType"]
    if item.get("blob") is not None:
        out["blob"] = _bytes(item["blob"])
    else:
        out["text"] = item.get("text") or ""
    if item.get("_meta"):
        out["meta"] = json.dumps(item["_meta"], ensure_ascii=False)
    return out


def _link(mount: Mount, item: dict[str, Any]) -> dict[str, Any]:
    names = {"title": "title", "description": "description", "mimeType": "mime_type", "size": "size"}
    block = {"type": "resource_link", "uri": mount.public_uri(item["uri"]), "name": item["name"]}
    return block | {ours: item[theirs] for theirs, ours in names.items() if item.get(theirs) is not None}


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=False)


OF: dict[str, Callable[[Mount, dict[str, Any], int], Outcome]] = {
    "tool": of_tool,
    "resource": of_resource,
    "prompt": of_prompt,
}
"""Kind of a call → what becomes of its result."""
OF |= {f"completion of a {kind}": of_completion for kind in ("prompt", "template")}
