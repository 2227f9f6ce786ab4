"""Results of tools: content blocks, and the conversion of any value for Neovim.

Values are serialized here, in the thread of the tool, not on the event loop or in Neovim.
"""

from __future__ import annotations

import base64
import dataclasses
import enum
import json
import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import Code
from .errors import ToolError

MAX_INTEGER = 2**53
"""Lua rounds larger integers; results are only passed through."""
MAX_DEPTH = 100
MAX_BLOCKS = 10_000
"""Maximum content blocks of one result."""
MAX_PATH = 200
"""Maximum characters of a path in an error."""
RAW = ("bytes", "blob")
"""Fields of content with bytes."""
TEXTS = ("text", "uri", "name", "title", "description", "mime_type")
"""Fields of content with text."""
NAMES = {"bytes": "data", "mime_type": "mimeType"}
"""Field → its name in MCP."""
DIGITS = re.compile(r"\d{16}")
AS_TEXT = {("uuid", "UUID"), ("decimal", "Decimal")}
"""Types by their names, since importing their modules would delay every worker."""


@dataclass(frozen=True, slots=True)
class Block:
    """One content block, made by the functions below."""

    fields: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Result:
    """A whole result.

    Attributes:
        content: content blocks.
        structured: structured content.
        is_error: the tool has failed.
        meta: metadata; names have a prefix (`example.com/key`).
    """

    content: Sequence[Block] = ()
    structured: dict[str, Any] | None = None
    is_error: bool = False
    meta: dict[str, Any] | None = None


def text(value: str) -> Block:
    """Returns a text block."""
    return Block({"type": "text", "text": value})


def image(data: bytes, mime_type: str) -> Block:
    """Returns an image block from raw bytes."""
    return Block({"type": "image", "bytes": data, "mime_type": mime_type})


def audio(data: bytes, mime_type: str) -> Block:
    """Returns an audio block from raw bytes."""
    return Block({"type": "audio", "bytes": data, "mime_type": mime_type})


def resource(uri: str, data: str | bytes, mime_type: str | None = None) -> Block:
    """Returns a block with the contents of a resource."""
    key = "text" if isinstance(data, str) else "blob"
    return Block({"type": "resource", "uri": uri, key: data, "mime_type": mime_type})


def resource_link(uri: str, name: str, **more: Any) -> Block:
    """Returns a link to a resource; `more`: `title`, `description`, `mime_type`, `size`."""
    return Block({"type": "resource_link", "uri": uri, "name": name, **more})


def simpler(value: Any) -> Any:
    """Converts a value to one that JSON supports; raises TypeError."""
    if isinstance(value, (Block, Result)):
        raise TypeError("content blocks must not be mixed with data")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (set, frozenset)):
        return list(value)
    kind = type(value)
    if kind.__module__ == "datetime" and hasattr(value, "isoformat"):
        return value.isoformat()
    if isinstance(value, os.PathLike) or (kind.__module__, kind.__name__) in AS_TEXT:
        return str(value)
    dump = getattr(value, "model_dump", None)  # a pydantic model; pydantic itself need not be imported
    if callable(dump) and not isinstance(value, type):
        return dump(mode="json", by_alias=True)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def find_fault(
    value: Any, path: str = "result", depth: int = 0, *, is_passed: bool = False
) -> tuple[str, str] | None:
    """Returns where and why a value cannot be serialized; None when it can.

    Args:
        value: any value.
        path: its place.
        depth: levels above it.
        is_passed: Lua does not decode it, so integers may have any size.
    """
    if depth > MAX_DEPTH:
        return path, f"nested deeper than {MAX_DEPTH} levels, or recursive"
    if isinstance(value, str):
        fault = not is_text(value)
        return (path, "text that is not UTF-8") if fault else None
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int):
        is_lost = abs(value) > MAX_INTEGER and not is_passed
        return (path, "an integer beyond 2^53 would lose digits") if is_lost else None
    if isinstance(value, float):
        return None if math.isfinite(value) else (path, "not a finite number")
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, (str, int)) or not is_text(str(key)):
                return path, f"the key {key!r} is not a string"
            if found := find_fault(item, f"{path}.{key}", depth + 1, is_passed=is_passed):
                return found
        return None
    if isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            if found := find_fault(item, f"{path}[{index}]", depth + 1, is_passed=is_passed):
                return found
        return None
    try:
        return find_fault(simpler(value), path, depth + 1, is_passed=is_passed)
    except TypeError as error:
        return path, str(error)


def is_text(value: str) -> bool:
    """Whether a string can be encoded as UTF-8."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def conversion_error(value: Any, why: str, *, is_passed: bool = False) -> ToolError:
    """Returns the error for a value that cannot be serialized."""
    path, reason = find_fault(value, is_passed=is_passed) or ("result", why)
    if len(path) > MAX_PATH:
        path = f"{path[:MAX_PATH]}…"
    return ToolError(f"{path}: {reason}", Code.NOT_SERIALIZABLE)


def to_json(value: Any, *, is_passed: bool = False) -> str:
    """Returns compact JSON text.

    Args:
        value: any value.
        is_passed: see `find_fault`.

    Raises:
        ToolError: it cannot be serialized.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=simpler)
    except (TypeError, ValueError, RecursionError) as error:
        raise conversion_error(value, str(error), is_passed=is_passed) from None
    may_be_deep = text.count("[") + text.count("{") > MAX_DEPTH
    may_be_faulty = may_be_deep or (not is_passed and DIGITS.search(text))
    if not is_text(text) or (may_be_faulty and find_fault(value, is_passed=is_passed)):
        raise conversion_error(value, "text that is not UTF-8", is_passed=is_passed)
    return text


def blocks_of(value: Any) -> list[dict[str, Any]] | None:
    """Returns content blocks as MCP has them; None for data."""
    blocks = [value] if isinstance(value, Block) else value
    if not isinstance(blocks, (list, tuple)) or not blocks:
        return None
    if not all(isinstance(block, Block) for block in blocks):
        return None
    return [block_of(block) for block in blocks]


def block_of(block: Block) -> dict[str, Any]:
    """Returns a block as MCP has it; raises ToolError or TypeError."""
    fields = {
        NAMES.get(key, key): field_of(key, item) for key, item in block.fields.items() if item is not None
    }
    if fields["type"] == "resource":
        return {"type": fields.pop("type"), "resource": fields}
    return fields


def field_of(key: str, item: Any) -> Any:
    """Returns the JSON value of a field of a block; raises ToolError or TypeError."""
    if key in RAW:
        if not isinstance(item, (bytes, bytearray)):
            raise TypeError(f"content: data must be bytes, not {type(item).__name__}")
        return base64.b64encode(item).decode()
    if not isinstance(item, str):
        data = json.loads(to_json(item, is_passed=True))
        if key in TEXTS:
            raise TypeError(f"content: {key} must be text, not {type(item).__name__}")
        return data
    if not is_text(item):
        raise ToolError(f"content.{key}: text that is not UTF-8", Code.NOT_SERIALIZABLE)
    return item


def size_of(text: str) -> int:
    """Returns the bytes of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def size_of_blocks(blocks: list[dict[str, Any]]) -> int:
    """Returns the bytes of the texts and data of blocks."""
    size = 0
    for block in blocks:
        fields = block.get("resource", block)
        size += sum(size_of(item) for item in fields.values() if isinstance(item, str))
    return size


def content_of(
    blocks: list[dict[str, Any]], texts: dict[str, str], is_error: bool
) -> tuple[dict[str, Any], int]:
    """Returns a result as MCP has it, and its bytes that count towards the limit.

    Args:
        blocks: content blocks.
        texts: JSON texts of other fields.
        is_error: the tool has failed.
    """
    if len(blocks) > MAX_BLOCKS:
        text = f"the result has {len(blocks)} content blocks, the limit is {MAX_BLOCKS}"
        raise ToolError(f"{text}: combine texts", Code.TOO_LARGE)
    parts = {"content": json.dumps(blocks, ensure_ascii=False, separators=(",", ":"))} | texts
    if is_error:
        parts["isError"] = "true"
    size = size_of_blocks(blocks) + sum(map(size_of, texts.values()))
    text = ",".join(f'"{key}":{part}' for key, part in parts.items())
    return {"kind": "content", "text": f"{{{text}}}", "size": size}, size


def outcome_of(value: Any, limit: int | None = None) -> dict[str, Any]:
    """Returns the outcome that is sent to Neovim.

    Args:
        value: return value of the tool.
        limit: maximum bytes; Neovim checks it too, but must not get a huge value.

    Raises:
        ToolError: `not_serializable` or `too_large`.
    """
    outcome: dict[str, Any]
    if value is None:
        return {"kind": "empty"}
    if isinstance(value, str):
        if not is_text(value):
            raise conversion_error(value, "")
        outcome, size = {"kind": "text", "text": value}, size_of(value)
    elif isinstance(value, Result):
        blocks = blocks_of(value.content)
        if blocks is None and value.content:
            raise TypeError("Result: `content` must consist of text(), image(), …")
        objects: list[Any] = [item for item in (value.structured, value.meta) if item is not None]
        if not all(isinstance(item, dict) for item in objects):
            raise TypeError("Result: `structured` and `meta` must be dicts")
        more = {"structuredContent": value.structured, "_meta": value.meta}
        texts = {key: to_json(item, is_passed=True) for key, item in more.items() if item is not None}
        outcome, size = content_of(blocks or [], texts, value.is_error)
    elif made := blocks_of(value):
        outcome, size = content_of(made, {}, False)
    else:
        text = to_json(value, is_passed=True)
        outcome, size = {"kind": "json", "text": text}, size_of(text)
    if limit and size > limit:
        raise ToolError(
            f"the result has more than {limit} bytes (option limits.tool_result): request less at a time",
            Code.TOO_LARGE,
        )
    return outcome
