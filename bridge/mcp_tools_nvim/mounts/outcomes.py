"""Converts results of mounted servers to the outcomes that lua/mcp-tools/calls/remote.lua expects."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import jsonrpc

if TYPE_CHECKING:
    from .mount import Mount

MountOutcome = dict[str, Any]

_RESERVED = ("mcp-tools.nvim/", "io.modelcontextprotocol/")
"""Key prefixes in `_meta` of this server and of the protocol; a mounted server must not set them."""
MAX_BLOCKS = 10_000
"""Maximum content blocks of one result, as for tools in Neovim."""
MAX_DEPTH = 96
"""Maximum nesting of a result; every client reads a message of 100 levels."""


def unreserved(item: dict[str, Any]) -> dict[str, Any]:
    """Returns an item without reserved keys in its `_meta` and without null fields."""
    meta = item.get("_meta")
    if isinstance(meta, dict):
        meta = {key: value for key, value in meta.items() if not key.startswith(_RESERVED)} or None
    return {key: value for key, value in (item | {"_meta": meta}).items() if value is not None}


def error_outcome(code: str, message: str) -> MountOutcome:
    """Returns the outcome of a failed call."""
    return {"kind": "error", "code": code, "message": message}


def utf8_size(text: str) -> int:
    """Returns the bytes of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def plain_text(raw: dict[str, Any], limit: int) -> str | None:
    """Returns the text of a `tools/call` result that is a single text; else None. Most results are."""
    content: list[dict[str, Any]] = raw.get("content") or []
    if len(content) == 1 and not raw.keys() & {"structuredContent", "_meta"} and not raw.get("isError"):
        block = content[0]
        if block.keys() == {"type", "text"} and block["type"] == "text" and utf8_size(block["text"]) <= limit:
            text: str = block["text"]
            return text
    return None


def of_tool(mount: Mount, raw: dict[str, Any], limit: int) -> MountOutcome:
    """Converts a `tools/call` result."""
    content = raw.get("content") or []
    if len(content) > MAX_BLOCKS:
        return error_outcome(
            "too_large", f"the result has {len(content)} content blocks, the limit is {MAX_BLOCKS}"
        )
    blocks, size = _blocks(mount, content)
    result: dict[str, Any] = {"content": blocks}
    if isinstance(raw.get("structuredContent"), dict):
        result["structuredContent"] = raw["structuredContent"]
    if raw.get("isError"):
        result["isError"] = True
    return _passed(mount, result | _meta_of(raw), size, limit, "tool_result")


def of_resource(mount: Mount, raw: dict[str, Any], limit: int) -> MountOutcome:
    """Converts a `resources/read` result."""
    contents = [_contents(mount, item) for item in raw.get("contents") or []]
    size = sum(utf8_size(item.get("text") or item.get("blob") or "") for item in contents)
    return _passed(mount, {"contents": contents} | _meta_of(raw), size, limit, "resource")


def of_prompt(mount: Mount, raw: dict[str, Any], limit: int) -> MountOutcome:
    """Converts a `prompts/get` result."""
    messages, size = [], 0
    for message in raw.get("messages") or []:
        blocks, bytes_ = _blocks(mount, [message["content"]])
        size += bytes_
        messages.append({"role": message["role"], "content": blocks[0]})
    result: dict[str, Any] = {"messages": messages}
    if raw.get("description"):
        result = {"description": raw["description"]} | result
    return _passed(mount, result | _meta_of(raw), size, limit, "tool_result")


def of_completion(_: Mount, raw: dict[str, Any], __: int) -> MountOutcome:
    """Converts a `completion/complete` result."""
    given = raw["completion"]
    values = {"values": given.get("values") or [], "has_more": bool(given.get("hasMore"))}
    if isinstance(given.get("total"), int):
        values["total"] = given["total"]
    return {"kind": "data", "text": json.dumps(values, ensure_ascii=False)}


def _meta_of(raw: dict[str, Any]) -> dict[str, Any]:
    meta = unreserved({"_meta": raw.get("_meta")})
    return meta if meta.get("_meta") else {}


def _passed(mount: Mount, result: dict[str, Any], size: int, limit: int, option: str) -> MountOutcome:
    """Returns the outcome of a result. Escapes and base64 do not count towards the limit, structure does."""
    more = {key: result[key] for key in ("structuredContent", "_meta") if key in result}
    try:
        size += utf8_size(_dumped(more)) if more else 0
        if size > limit:
            text = f"the result has {size} bytes, the limit is {limit} (option limits.{option})"
            return error_outcome("too_large", text)
        text = _dumped(result)
    except (ValueError, RecursionError) as fault:
        return error_outcome(
            "invalid_output", f"mount '{mount.name}' returned a result that is not valid JSON: {fault}"
        )
    if jsonrpc.is_deep(result, MAX_DEPTH):
        text = f"mount '{mount.name}' returned a result that is nested deeper than {MAX_DEPTH} levels"
        return error_outcome("invalid_output", text)
    return {"kind": "content", "text": text, "size": size}


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _blocks(mount: Mount, items: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], int]:
    """Returns converted content blocks, and their bytes that count towards the limit."""
    blocks, size = [], 0
    for item in items:
        kind = item.get("type")
        block = unreserved(item)
        if kind == "text":
            size += utf8_size(block["text"])
        elif kind in ("image", "audio"):
            size += len(block["data"])
        elif kind == "resource":
            block["resource"] = inner = _contents(mount, block["resource"])
            size += utf8_size(inner.get("text") or inner.get("blob") or "")
        elif kind == "resource_link":
            block["uri"] = mount.public_uri(block["uri"])
            size += sum(utf8_size(value) for value in block.values() if isinstance(value, str))
        else:
            block = {"type": "text", "text": json.dumps(item, ensure_ascii=False)}
            size += utf8_size(block["text"])
        blocks.append(block)
    return blocks, size


def _contents(mount: Mount, item: dict[str, Any]) -> dict[str, Any]:
    out = unreserved(item)
    out["uri"] = mount.public_uri(out["uri"])
    if "text" not in out and "blob" not in out:
        out["text"] = ""
    return out


CONVERTERS: dict[str, Callable[[Mount, dict[str, Any], int], MountOutcome]] = {
    "tool": of_tool,
    "resource": of_resource,
    "prompt": of_prompt,
}
"""Kind of a call → converter of its result."""
CONVERTERS |= {f"completion of a {kind}": of_completion for kind in ("prompt", "template")}
