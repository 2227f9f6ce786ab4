"""TOML, by a library that keeps comments and order.

Receives a text, where a table belongs, its value. Sends the text with that table. Does not know about: files.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from .fault import FormatError


def read(text: str) -> Any:
    """The values of a text."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FormatError(str(error)) from error


def put(text: str, path: Sequence[str], value: Any) -> str:
    """Sets the table at `path`; tables on the way are made where they are missing."""
    document = _parse(text)
    table: Any = document
    for key in path[:-1]:
        if key not in table:
            table[key] = tomlkit.table(is_super_table=True)
        table = table[key]
        if not isinstance(table, dict):
            raise FormatError(f"{key}: there is something else than a table")
    table[path[-1]] = value
    return tomlkit.dumps(document)


def remove(text: str, path: Sequence[str]) -> str:
    """Takes the table at `path` out; a text without it stays as it is."""
    document = _parse(text)
    table: Any = document
    for key in path[:-1]:
        table = table.get(key) if isinstance(table, dict) else None
    if not isinstance(table, dict) or path[-1] not in table:
        return text
    del table[path[-1]]
    return tomlkit.dumps(document)


def _parse(text: str) -> tomlkit.TOMLDocument:
    try:
        return tomlkit.parse(text)
    except TOMLKitError as error:
        raise FormatError(str(error)) from error
