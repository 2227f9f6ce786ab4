"""YAML, by a library that keeps comments and order.

Receives a text, where an entry belongs, its value. Sends the text with it. Does not know about: files.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from .fault import FormatError


def read(text: str) -> Any:
    """The values of a text; of an empty one an empty table."""
    try:
        return YAML(typ="safe", pure=True).load(text) or {}
    except YAMLError as error:
        raise FormatError(str(error).split("\n")[0]) from error


def put(text: str, path: Sequence[str], value: Any) -> str:
    """Sets the entry at `path`; tables on the way are made where they are missing."""
    library, document = _parse(text)
    table = document
    for key in path[:-1]:
        if table.get(key) is None:
            table[key] = {}
        table = table[key]
        if not isinstance(table, dict):
            raise FormatError(f"{key}: there is something else than a table")
    table[path[-1]] = value
    written = _dump(library, document)
    # The library forgets the comments of a file that holds nothing else.
    return text + written if text.strip() and _is_comment(text) else written


def remove(text: str, path: Sequence[str]) -> str:
    """Takes the entry at `path` out; a text without it stays as it is."""
    library, document = _parse(text)
    table = document
    for key in path[:-1]:
        table = table.get(key) if isinstance(table, dict) else None
    if not isinstance(table, dict) or path[-1] not in table:
        return text
    del table[path[-1]]
    return _dump(library, document)


def _parse(text: str) -> tuple[YAML, Any]:
    library = YAML(pure=True)
    library.preserve_quotes = True
    library.width = 4096
    try:
        document = library.load(text)
    except YAMLError as error:
        raise FormatError(str(error).split("\n")[0]) from error
    if document is None:
        document = library.map()
    if not isinstance(document, dict):
        raise FormatError("the file holds something else than a table")
    return library, document


def _is_comment(text: str) -> bool:
    return all(not line.strip() or line.lstrip().startswith("#") for line in text.splitlines())


def _dump(library: YAML, document: Any) -> str:
    out = io.StringIO()
    library.dump(document, out)
    return out.getvalue()
