"""TOML, by a library that keeps comments and order."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from . import FormatError, is_at, replace_lines, table_for, value_at


def read(text: str) -> Any:
    """Returns the values of a text."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FormatError(str(error)) from error


def put(text: str, path: Sequence[str], value: Any) -> str:
    """Sets the table at `path`; creates missing tables."""
    if is_at(read, text, path, value):
        return text
    document = _parse(text)
    if (span := _span(text, path)) is not None:
        changed = replace_lines(text, span, put("", path, value))
        if is_at(read, changed, path, value):
            return changed
    table = table_for(document, path, lambda: tomlkit.table(is_super_table=True))
    table[path[-1]] = value
    return tomlkit.dumps(document)


def remove(text: str, path: Sequence[str]) -> str:
    """Removes the table at `path`, if it exists."""
    document = _parse(text)
    table = value_at(document, path[:-1])
    if not isinstance(table, dict) or path[-1] not in table:
        return text
    if (span := _span(text, path)) is not None:
        changed = replace_lines(text, span, "")
        if is_at(read, changed, path, None):
            return changed
    del table[path[-1]]
    return tomlkit.dumps(document)


def _span(text: str, path: Sequence[str]) -> tuple[int, int] | None:
    """Returns the lines of a table and its subtables. Comments before the next table belong to that one.

    The library would remove them with the table above.
    """
    found: list[int] = []
    for number, line in enumerate((*text.splitlines(), "[")):
        if line.lstrip().startswith("["):
            inside = _header(line)[: len(path)] == list(path)
            if found and not inside:
                return found[0], found[-1] + 1
            if inside:
                found.append(number)
        elif found and line.strip() and not line.lstrip().startswith("#"):
            found.append(number)
    return None


def _header(line: str) -> list[str]:
    """Returns the keys of `[a.b]`; an empty list for any other line."""
    keys: list[str] = []
    try:
        table: Any = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return []
    while isinstance(table, dict) and table:
        key, table = next(iter(table.items()))
        keys.append(key)
    return keys


def _parse(text: str) -> tomlkit.TOMLDocument:
    try:
        return tomlkit.parse(text)
    except TOMLKitError as error:
        raise FormatError(str(error)) from error
