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
    """Returns what is at `path`; None where a table on the way is missing."""
    for key in path:
        values = values.get(key) if isinstance(values, dict) else None
    return values


def table_for(values: Any, path: Sequence[str], new: Callable[[], Any] = dict) -> Any:
    """Returns the table that holds the last key of `path`; tables on the way are made where they are missing.

    Raises:
        FormatError: something else than a table is on the way.
    """
    for key in path[:-1]:
        if values.get(key) is None:
            values[key] = new()
        values = values[key]
        if not isinstance(values, dict):
            raise FormatError(f"{key}: there is something else than a table")
    return values
