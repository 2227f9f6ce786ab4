"""JSON with comments and trailing commas, edited in place. A path names the items of an array by numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from . import FormatError, value_at

_SPACE = re.compile(r"(?:[ \t\r\n\ufeff]|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_ATOM = re.compile(r"[^\s,\]}:/]+")
_REST_OF_LINE = re.compile(r"[ \t]*//[^\n]*")
_LINE_END = re.compile(r"[ \t]*\r?\n")
MAX_DEPTH = 200


class Member(NamedTuple):
    """One member of an object, from its key to the end of its value, or one item of an array."""

    key: str
    begin: int
    value: Node
    end: int


class Node(NamedTuple):
    """A value and its position; of an object or array its members, and whether they end with a comma."""

    begin: int
    end: int
    value: Any
    members: list[Member] | None = None
    comma: bool = False


def read(text: str) -> Any:
    """Returns the values of a text; an empty object for an empty text."""
    return {} if _is_empty(text) else _parse(text).value


def put(text: str, path: Sequence[str], value: Any) -> str:
    """Sets the member at `path`; creates missing objects."""
    if _is_empty(text):
        return json.dumps(_nested(path, value), indent=2, ensure_ascii=False) + "\n"
    plain = text.replace("\r\n", "\n")
    if plain == text or plain.replace("\n", "\r\n") != text:
        return _put(text, path, value)  # not all of its lines end in CRLF
    return _put(plain, path, value).replace("\n", "\r\n")


def _put(text: str, path: Sequence[str], value: Any) -> str:
    node, depth = _parse(text), 0
    unit = _indent_unit(text)
    for key in path:
        if node.members is None or (isinstance(node.value, list) and not key.isdecimal()):
            raise FormatError(f"{'.'.join(path[:depth]) or 'the file'}: not an object")
        member = _last(node.members, key)
        if member is None:
            return _insert(text, node, key, _nested(path[depth + 1 :], value), unit, depth + 1)
        node, depth = member.value, depth + 1
    if node.value == value:
        return text
    return text[: node.begin] + _dump(value, unit, depth) + text[node.end :]


def remove(text: str, path: Sequence[str]) -> str:
    """Removes the member at `path` and its comma, if it exists."""
    if _is_empty(text):
        return text
    node = _parse(text)
    for key in path[:-1]:
        member = _last(node.members or [], key)
        if member is None:
            return text
        node = member.value
    members = node.members or []
    member = _last(members, path[-1])
    if member is None:
        return text
    at = members.index(member)
    if at + 1 < len(members) or node.comma:
        return _cut_with_comma(text, member)
    if at > 0:
        # Only the comma before it is removed, not the text between them.
        comma = text.index(",", _skip(text, members[at - 1].end))
        between, after = text[comma + 1 : member.begin].rstrip(), text[member.end :]
        if "//" in between.rpartition("\n")[2] and not after.startswith(("\n", "\r")):
            between += "\n"  # a comment ends with its line
        return text[:comma] + between + after
    before, after = text[node.begin + 1 : member.begin].rstrip(), text[member.end : node.end - 1].rstrip()
    if not (before + after).strip():
        return text[: node.begin + 1] + text[node.end - 1 :]
    line = text[text.rfind("\n", 0, node.end - 1) + 1 : node.end - 1]
    return (
        text[: node.begin + 1]
        + before
        + after
        + "\n"
        + (line if not line.strip() else "")
        + text[node.end - 1 :]
    )


def remove_where(text: str, path: Sequence[str], matches: Callable[[Any, Any], bool]) -> str:
    """Removes members of the object or items of the list at `path`, and objects and lists that this empties.

    Args:
        text: the text.
        path: keys of the object or list.
        matches: returns whether to remove a member, by key or index, and value.
    """
    there = value_at(read(text), path)
    pairs = there.items() if isinstance(there, dict) else enumerate(there if isinstance(there, list) else ())
    gone = [str(key) for key, value in pairs if matches(key, value)]
    for key in reversed(gone):
        text = remove(text, (*path, key))
    while gone and path and value_at(read(text), path) in ({}, []):
        text, path = remove(text, path), path[:-1]
    return text


def _cut_with_comma(text: str, member: Member) -> str:
    end = text.index(",", _skip(text, member.end)) + 1
    line = text.rfind("\n", 0, member.begin) + 1
    rest = _LINE_END.match(text, end)
    if rest and not text[line : member.begin].strip():
        return text[:line] + text[rest.end() :]
    return text[: member.begin] + text[end:].lstrip(" \t")


def _is_empty(text: str) -> bool:
    return _skip(text, 0) == len(text) and not text.strip("\ufeff \t\r\n")


def _nested(path: Sequence[str], value: Any) -> Any:
    for key in reversed(path):
        value = {key: value}
    return value


def _insert(text: str, node: Node, key: str, value: Any, unit: str, depth: int) -> str:
    name = "" if isinstance(node.value, list) else f"{json.dumps(key, ensure_ascii=False)}: "
    entry = f"\n{unit * depth}{name}{_dump(value, unit, depth)}"
    if node.members:
        last = node.members[-1].end
        if node.comma:
            last = text.index(",", _skip(text, last)) + 1
        rest = _REST_OF_LINE.match(text, last)
        at = rest.end() if rest else last
        comma = ("", ",") if node.comma else (",", "")
        return text[:last] + comma[0] + text[last:at] + entry + comma[1] + text[at:]
    inside = text[node.begin + 1 : node.end - 1].rstrip()
    return text[: node.begin + 1] + inside + entry + "\n" + unit * (depth - 1) + text[node.end - 1 :]


def _dump(value: Any, unit: str, depth: int) -> str:
    text = json.dumps(value, indent=unit or 2, ensure_ascii=False)
    return text.replace("\n", "\n" + unit * depth)


def _indent_unit(text: str) -> str:
    found = re.search(r"\{[ \t]*(?://[^\n]*)?\r?\n([ \t]+)\S", text)
    return found[1] if found else "  "


def _last(members: list[Member], key: str) -> Member | None:
    return next((member for member in reversed(members) if member.key == key), None)


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _parse(text: str) -> Node:
    node = _value(text, _skip(text, 0), 0)
    end = _skip(text, node.end)
    if end != len(text):
        raise _wrong(text, end, "text after the end")
    return node


def _value(text: str, at: int, depth: int) -> Node:
    if depth > MAX_DEPTH:
        raise _wrong(text, at, "nested too deep")
    head = text[at : at + 1]
    if head in ("{", "["):
        return _container(text, at, depth)
    found = (_STRING if head == '"' else _ATOM).match(text, at)
    if found is None:
        raise _wrong(text, at, "a value is missing")
    try:
        return Node(at, found.end(), json.loads(found[0]))
    except ValueError as error:
        raise _wrong(text, at, f"{found[0][:40]} is not a value") from error


def _container(text: str, begin: int, depth: int) -> Node:
    """Parses an object or an array."""
    is_object = text[begin] == "{"
    members: list[Member] = []
    at, comma = _skip(text, begin + 1), False
    while text[at : at + 1] != ("}" if is_object else "]"):
        if members and not comma:
            raise _wrong(text, at, "a comma is missing")
        key, value = _key(text, at) if is_object else (str(len(members)), at)
        node = _value(text, value, depth + 1)
        members.append(Member(key, at, node, node.end))
        at = _skip(text, node.end)
        comma = text[at : at + 1] == ","
        if comma:
            at = _skip(text, at + 1)
    values = [member.value.value for member in members]
    named = dict(zip((member.key for member in members), values, strict=True))
    return Node(begin, at + 1, named if is_object else values, members, comma)


def _key(text: str, at: int) -> tuple[str, int]:
    """Returns the key of a member, and where its value begins."""
    found = _STRING.match(text, at)
    if found is None:
        raise _wrong(text, at, "a key is missing")
    colon = _skip(text, found.end())
    if text[colon : colon + 1] != ":":
        raise _wrong(text, colon, "a colon is missing")
    return str(json.loads(found[0])), _skip(text, colon + 1)


def _wrong(text: str, at: int, what: str) -> FormatError:
    line = text.count("\n", 0, at) + 1
    return FormatError(f"line {line}: {what}")
