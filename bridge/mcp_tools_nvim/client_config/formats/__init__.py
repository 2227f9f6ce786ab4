"""Formats of configuration files: each sets or removes one entry, and leaves everything else as it is.

Each module has `read(text)`, the values; `put(text, path, value)` and `remove(text, path)`, the new text.
They raise `FormatError` for a text that they cannot read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


class FormatError(Exception):
    """The text cannot be read, or something else is where the entry belongs; the message says where."""


def value_at(values: Any, path: Sequence[str]) -> Any:
    """Returns the value at `path`; None if it does not exist."""
    for key in path:
        values = values.get(key) if isinstance(values, dict) else None
    return values


def table_for(values: Any, path: Sequence[str], new: Callable[[], Any] = dict) -> Any:
    """Returns the table with the last key of `path`; creates missing tables.

    Raises:
        FormatError: a value on the path is not a table.
    """
    for key in path[:-1]:
        if values.get(key) is None:
            values[key] = new()
        values = values[key]
        if not isinstance(values, dict):
            raise FormatError(f"{key}: not a table")
    return values


def is_at(read: Callable[[str], Any], text: str, path: Sequence[str], value: Any) -> bool:
    """Returns whether a text can be read and has this value at `path`."""
    try:
        return bool(value_at(read(text), path) == value)
    except FormatError:
        return False


def replace_lines(text: str, span: tuple[int, int], new: str) -> str:
    """Returns the text with the lines of a span replaced."""
    lines = text.splitlines(keepends=True)
    return "".join((*lines[: span[0]], new, *lines[span[1] :]))
