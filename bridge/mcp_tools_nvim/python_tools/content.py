"""Content values: what a tool returns when plain data is not enough.

Receives: text and bytes from tools. Sends: blocks that results.py writes as MCP has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Block:
    """One content block, made by the functions below."""

    fields: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Result:
    """A whole result.

    Attributes:
        content: its blocks.
        structured: data beside them.
        is_error: it tells of a failure.
        meta: metadata, by names with a prefix (`example.com/key`).
    """

    content: Sequence[Block] = ()
    structured: dict[str, Any] | None = None
    is_error: bool = False
    meta: dict[str, Any] | None = None


def text(value: str) -> Block:
    """A text block."""
    return Block({"type": "text", "text": value})


def image(data: bytes, mime_type: str) -> Block:
    """An image block from raw bytes."""
    return Block({"type": "image", "bytes": data, "mime_type": mime_type})


def audio(data: bytes, mime_type: str) -> Block:
    """An audio block from raw bytes."""
    return Block({"type": "audio", "bytes": data, "mime_type": mime_type})


def resource(uri: str, data: str | bytes, mime_type: str | None = None) -> Block:
    """A resource's contents, embedded in the result."""
    key = "text" if isinstance(data, str) else "blob"
    return Block({"type": "resource", "uri": uri, key: data, "mime_type": mime_type})


def resource_link(uri: str, name: str, **more: Any) -> Block:
    """A link to a resource that the client may read: `title`, `description`, `mime_type`, `size`."""
    return Block({"type": "resource_link", "uri": uri, "name": name, **more})
