"""What a tool returned, as it crosses to the editor.

Receives: any value. Sends: `{kind, …}` with text, JSON text or content, or a ToolError that names what
cannot go.
Does not know about: calls, the channel. JSON text is made here, in the tool's own thread, so that neither
the host's loop nor the editor walks a large value.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import math
import os
import re
from typing import Any

from ..errors import Code
from .content import Block, Result
from .errors import ToolError

MAX_INTEGER = 2**53
"""Larger ones would be rounded in Lua."""
MAX_DEPTH = 100
MAX_PATH = 200
"""Characters of where a fault is."""
RAW = ("bytes", "blob")
"""Fields of content that hold bytes."""
DIGITS = re.compile(r"\d{16}")
AS_TEXT = {("uuid", "UUID"), ("decimal", "Decimal")}
"""Types by their names: importing their modules would cost the start of every host some ms."""


def simpler(value: Any) -> Any:
    """What JSON knows in place of a value that it does not; raises TypeError."""
    if isinstance(value, (Block, Result)):
        raise TypeError("content stands among data; a list of content holds nothing else")
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


def find_fault(value: Any, path: str = "result", depth: int = 0) -> tuple[str, str] | None:
    """Where and why a value cannot be written; None when it can."""
    if depth > MAX_DEPTH:
        return path, f"nested deeper than {MAX_DEPTH} levels, or within itself"
    if isinstance(value, str):
        fault = not is_text(value)
        return (path, "text that is not UTF-8") if fault else None
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int):
        return (path, "an integer beyond 2^53 would lose digits") if abs(value) > MAX_INTEGER else None
    if isinstance(value, float):
        return None if math.isfinite(value) else (path, "not a finite number")
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, (str, int)) or not is_text(str(key)):
                return path, f"the key {key!r} is no text"
            if found := find_fault(item, f"{path}.{key}", depth + 1):
                return found
        return None
    if isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            if found := find_fault(item, f"{path}[{index}]", depth + 1):
                return found
        return None
    try:
        return find_fault(simpler(value), path, depth + 1)
    except TypeError as error:
        return path, str(error)


def is_text(value: str) -> bool:
    """Can it be written as UTF-8?"""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def refused(value: Any, why: str) -> ToolError:
    """The error for a value that cannot be written."""
    path, reason = find_fault(value) or ("result", why)
    if len(path) > MAX_PATH:
        path = f"{path[:MAX_PATH]}…"
    return ToolError(f"{path}: {reason}", Code.NOT_SERIALIZABLE)


def to_json(value: Any) -> str:
    """Compact JSON text; raises ToolError."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=simpler)
    except (TypeError, ValueError, RecursionError) as error:
        raise refused(value, str(error)) from None
    if not is_text(text) or (DIGITS.search(text) and find_fault(value)):
        raise refused(value, "text that is not UTF-8")
    return text


def blocks_of(value: Any) -> list[dict[str, Any]] | None:
    """The blocks of content; None for plain data."""
    blocks = [value] if isinstance(value, Block) else value
    if not isinstance(blocks, (list, tuple)) or not blocks:
        return None
    if not all(isinstance(block, Block) for block in blocks):
        return None
    return [
        {key: field_of(key, item) for key, item in block.fields.items() if item is not None}
        for block in blocks
    ]


def field_of(key: str, item: Any) -> Any:
    """A field of a block as something that the channel can carry; raises ToolError."""
    if key in RAW:
        if not isinstance(item, (bytes, bytearray)):
            raise TypeError(f"content: data must be bytes, not {type(item).__name__}")
        return bytes(item)
    if not isinstance(item, str):
        return json.loads(to_json(item))
    if not is_text(item):
        raise ToolError(f"content.{key}: text that is not UTF-8", Code.NOT_SERIALIZABLE)
    return item


def size_of(blocks: list[dict[str, Any]]) -> int:
    """Bytes of the texts and data of blocks."""
    return sum(len(item) for block in blocks for item in block.values() if isinstance(item, (str, bytes)))


def outcome_of(value: Any, limit: int | None = None) -> dict[str, Any]:
    """What crosses to the editor.

    Args:
        value: what the tool returned.
        limit: bytes allowed; the editor counts again, this only keeps a huge value out of it.

    Raises:
        ToolError: `not_serializable` or `too_large`.
    """
    outcome: dict[str, Any]
    if value is None:
        return {"kind": "empty"}
    if isinstance(value, str):
        if not is_text(value):
            raise refused(value, "")
        outcome, size = {"kind": "text", "text": value}, len(value)
    elif isinstance(value, Result):
        blocks = blocks_of(value.content)
        if blocks is None and value.content:
            raise TypeError("Result: `content` must be made by text(), image(), …")
        objects: list[Any] = [item for item in (value.structured, value.meta) if item is not None]
        if not all(isinstance(item, dict) for item in objects):
            raise TypeError("Result: `structured` and `meta` must be dicts")
        blocks = blocks or []
        more = {"structured": value.structured, "meta": value.meta}
        outcome = {"kind": "content", "blocks": blocks} | ({"is_error": True} if value.is_error else {})
        outcome |= {key: to_json(item) for key, item in more.items() if item is not None}
        size = size_of(blocks) + len(outcome.get("structured", ""))
    elif made := blocks_of(value):
        outcome, size = {"kind": "content", "blocks": made}, size_of(made)
    else:
        text = to_json(value)
        outcome, size = {"kind": "json", "text": text}, len(text)
    if limit and size > limit:
        raise ToolError(
            f"the result has more than {limit} bytes (option limits.tool_result): ask for less at a time",
            Code.TOO_LARGE,
        )
    return outcome
