"""YAML, by a library that keeps comments and order."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, ScalarNode

from . import FormatError, is_at, replace_lines, table_for, value_at


def read(text: str) -> Any:
    """Returns the values of a text; an empty table for an empty text."""
    try:
        return YAML(typ="safe", pure=True).load(text) or {}
    except YAMLError as error:
        raise FormatError(str(error).split("\n")[0]) from error


def put(text: str, path: Sequence[str], value: Any) -> str:
    """Sets the entry at `path`; creates missing tables."""
    if is_at(read, text, path, value):
        return text
    library, document = _parse(text)
    if (span := _span(text, path)) is not None:
        entry = _dump(YAML(pure=True), {path[-1]: value})
        changed = replace_lines(text, span, _indented(entry, text.splitlines()[span[0]]))
        if is_at(read, changed, path, value):
            return changed
    table = table_for(document, path)
    table[path[-1]] = value
    written = _dump(library, document)
    # The library drops the comments of a file without entries.
    return text + written if text.strip() and _is_comment(text) else written


def remove(text: str, path: Sequence[str]) -> str:
    """Removes the entry at `path`, if it exists."""
    library, document = _parse(text)
    table = value_at(document, path[:-1])
    if not isinstance(table, dict) or path[-1] not in table:
        return text
    if (span := _span(text, path)) is not None:
        alone = len(table) == 1 and len(path) > 1
        rest = _indented("{}\n", text.splitlines()[span[0]]) if alone else ""
        changed = replace_lines(text, span, rest)
        if is_at(read, changed, path, None):
            return changed
    del table[path[-1]]
    return _dump(library, document)


def _span(text: str, path: Sequence[str]) -> tuple[int, int] | None:
    """Returns the lines of an entry, if it has its own lines. Comments below belong to the next entry.

    The library would remove them with the entry above.
    """
    node, key = YAML(pure=True).compose(text), None
    for name in path:
        if not isinstance(node, MappingNode) or node.flow_style:
            return None
        key, node = next(((key, value) for key, value in node.value if key.value == name), (None, None))
    if key is None:
        return None
    start, end = key.start_mark.line, _last(node) + 1
    return (start, end) if start < end else None  # else an alias


def _last(node: Any) -> int:
    """Returns the last line of a node."""
    if isinstance(node, ScalarNode) or node.flow_style:
        return int(node.end_mark.line) - (1 if node.end_mark.column == 0 else 0)
    parts = [each for pair in node.value for each in (pair if isinstance(pair, tuple) else (pair,))]
    return max(_last(each) for each in parts)


def _indented(text: str, like: str) -> str:
    indent = like[: len(like) - len(like.lstrip(" "))]
    return "".join(indent + line for line in text.splitlines(keepends=True))


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
        raise FormatError("the file does not contain a table")
    return library, document


def _is_comment(text: str) -> bool:
    return all(not line.strip() or line.lstrip().startswith("#") for line in text.splitlines())


def _dump(library: YAML, document: Any) -> str:
    out = io.StringIO()
    library.dump(document, out)
    return out.getvalue()
