"""YAML, changed in place: a library finds where an entry is, and writes new entries only."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from functools import reduce
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, ScalarNode

from . import FormatError, is_at, replace_lines

NULLS = ("", "~", "null", "Null", "NULL")


def read(text: str) -> Any:
    """Returns the values of a text; an empty table for an empty text."""
    try:
        return YAML(typ="safe", pure=True).load(text) or {}
    except YAMLError as error:
        raise FormatError(str(error).split("\n")[0]) from error


def put(text: str, path: Sequence[str], value: Any) -> str:
    """Sets the entry at `path`; creates missing tables. Returns the same text where that is not possible."""
    if is_at(read, text, path, value):
        return text
    pairs, node = _find(text, path)
    depth = len(pairs)
    if depth == len(path):
        changed = _replace(text, pairs, {path[-1]: value})
    else:
        entry = reduce(lambda inner, name: {name: inner}, reversed(path[depth:]), value)
        changed = _insert(text, pairs, node, entry)
    return changed if is_at(read, changed, path, value) else text


def remove(text: str, path: Sequence[str]) -> str:
    """Removes the entry at `path`, if it exists. Returns the same text where that is not possible."""
    pairs, _ = _find(text, path)
    if len(pairs) < len(path):
        return text
    changed = _replace(text, pairs, {})
    return changed if is_at(read, changed, path, None) else text


def _find(text: str, path: Sequence[str]) -> tuple[list[tuple[Any, Any, Any]], Any]:
    """Returns the pairs on the path that exist, as mapping, key and value, and the value of the last one."""
    try:
        node = YAML(pure=True).compose(text)
    except YAMLError as error:
        raise FormatError(str(error).split("\n")[0]) from error
    pairs: list[tuple[Any, Any, Any]] = []
    for name in path:
        if node is None or _is_null(node):
            break
        if not isinstance(node, MappingNode):
            raise FormatError(f"{pairs[-1][1].value if pairs else 'the file'}: not a table")
        key, value = next(((key, value) for key, value in node.value if key.value == name), (None, None))
        if key is None:
            break
        pairs.append((node, key, value))
        node = value
    return pairs, node


def _replace(text: str, pairs: list[tuple[Any, Any, Any]], entry: dict[str, Any]) -> str:
    """Replaces an entry; removes it if the new one is empty."""
    mapping, key, value = pairs[-1]
    if mapping.flow_style:
        before, after = text[: key.start_mark.index], text[value.end_mark.index :]
        if entry:
            return before + _flow(entry) + after
        if before.rstrip().endswith(","):
            return before.rstrip()[:-1] + after
        return before + after.lstrip().removeprefix(",").lstrip(" ")
    # Comments below belong to the next entry.
    start, end = key.start_mark.line, _last((key, value)) + 1
    if value.start_mark.index < key.start_mark.index:  # an alias
        return text
    is_alone = len(mapping.value) == 1 and len(pairs) > 1
    new = _block(text, entry, key.start_mark.column, len(pairs) - 1) if entry or is_alone else ""
    return replace_lines(text, (start, end), new)


def _insert(text: str, pairs: list[tuple[Any, Any, Any]], node: Any, entry: dict[str, Any]) -> str:
    """Adds an entry to a mapping, or to an empty value."""
    if isinstance(node, MappingNode) and node.flow_style:
        at = len(text[: node.end_mark.index - 1].rstrip(" "))
        separator = ", " if node.value and not text[:at].rstrip().endswith(",") else ""
        return text[:at] + separator + _flow(entry) + text[at:]
    lines = text.splitlines(keepends=True)
    if isinstance(node, MappingNode):
        column, line = node.value[0][0].start_mark.column, _last(node) + 1
        for number in range(line, len(lines)):
            words = lines[number].lstrip(" ")
            if words.startswith("#") and len(lines[number]) - len(words) >= column:
                line = number + 1  # a comment in the mapping
            elif words.strip():
                break
    elif not pairs:
        column, line = 0, len(lines)
    elif node.value:
        return text[: node.start_mark.index] + "{" + _flow(entry) + "}" + text[node.end_mark.index :]
    else:
        key = pairs[-1][1]
        column, line = key.start_mark.column + 2, key.end_mark.line + 1
    if 0 < line == len(lines) and not lines[-1].endswith("\n"):
        text += _newline(text)
    return replace_lines(text, (line, line), _block(text, entry, column, len(pairs)))


def _is_null(node: Any) -> bool:
    return isinstance(node, ScalarNode) and node.style is None and node.value in NULLS


def _last(node: Any) -> int:
    """Returns the last line of a node, or of a key and its value."""
    if isinstance(node, tuple):
        key, value = node
        is_empty = value.start_mark.index == value.end_mark.index  # its marks may be at the next token
        return _last(key) if is_empty else max(_last(key), _last(value))
    if isinstance(node, ScalarNode) or node.flow_style:
        return int(node.end_mark.line) - (1 if node.end_mark.column == 0 else 0)
    return max(_last(each) for each in node.value)


def _flow(entry: dict[str, Any]) -> str:
    return json.dumps(entry, ensure_ascii=False)[1:-1]


def _block(text: str, entry: dict[str, Any], column: int, depth: int) -> str:
    """Returns the lines of an entry, with the indentation and line ends of a text."""
    library, out = YAML(pure=True), io.StringIO()
    library.width = 4096
    library.indent(mapping=column // depth if depth else 2)
    library.dump(entry, out)
    lines = [" " * column + line + _newline(text) for line in out.getvalue().splitlines()]
    return "".join(lines)


def _newline(text: str) -> str:
    return "\r\n" if text.partition("\n")[0].endswith("\r") else "\n"
