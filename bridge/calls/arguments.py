"""Arguments that do not survive the way to Lua are refused here; everything else is for the tool's schema.

Receives: the arguments of a call, as parsed, and what else of a client's goes to the editor.
Sends: the faults. Does not know about: schemas.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

from ..errors import Code
from ..model import FieldError, Outcome, ToolError

MAX_INTEGER = 2**53
"""Lua's numbers are doubles: beyond it neighbours become equal, silently."""

MAX_VALUES = 10_000
"""Values that the arguments of one call may hold: the editor looks at each on its main thread, and ten
thousand take it 5 ms. What is long is text, and that is one value."""

MAX_NAMES, MAX_NAME_BYTES = 1000, 64 * 1024
"""Different names in the objects of one call, and characters of all of them: each may be a path or name a
file, which takes the editor some time."""

MAX_FIELD = 200
"""Characters of a name that is told back."""

MAX_FAULTS = 100
"""Faults that are told; a client needs to see the kind, not all of them."""


def faults_of(arguments: dict[str, Any]) -> tuple[FieldError, ...]:
    """One fault per number that Lua would round or cannot hold; or one, when there is too much."""
    extent = _look(arguments)
    if extent.values > MAX_VALUES:
        text = f"has more than {MAX_VALUES} values; send fewer, or what belongs together as one text"
        return (FieldError(_largest(arguments), text),)
    if extent.names > MAX_NAMES or extent.name_bytes > MAX_NAME_BYTES:
        names = set(_names(arguments))
        if len(names) > MAX_NAMES or sum(map(len, names)) > MAX_NAME_BYTES:
            text = f"has more than {MAX_NAMES} different names, or {MAX_NAME_BYTES} characters of names"
            return (FieldError(_largest(arguments), f"{text}; send fewer, or a list of pairs, or one text"),)
    return tuple(islice(_faults(arguments, ""), MAX_FAULTS)) if extent.faulty else ()


def fits(value: Any) -> bool:
    """Whether a value of a client has no more parts than the editor looks through in a few milliseconds."""
    extent = _look({"": value})
    return extent.values <= MAX_VALUES and extent.names <= MAX_VALUES


def refused(arguments: dict[str, Any]) -> Outcome | None:
    """The outcome of a call with such arguments; None when they are in order."""
    faults = faults_of(arguments)
    if not faults:
        return None
    text = "; ".join(f"{fault.field}: {fault.message}" for fault in faults[:5])
    return Outcome("failed", error=ToolError(Code.VALIDATION_ERROR, text, faults))


class _Extent(NamedTuple):
    """How much there is; with more values than count, the rest has not been looked at."""

    values: int
    names: int
    name_bytes: int
    faulty: bool


def _look(arguments: dict[str, Any]) -> _Extent:
    """How much there is, as far as it counts, and whether a value has a fault: nearly no call has."""
    stack: list[Any] = [arguments]
    count, names, size, faulty = 0, 0, 0, False
    while stack:
        value = stack.pop()
        kind = type(value)
        if kind is str:
            continue
        if kind is dict:
            count += len(value)
            names += len(value)
            size += sum(map(len, value))
            stack.extend(value.values())
        elif kind is list:
            count += len(value)
            stack.extend(value)
        elif _fault(value):
            faulty = True
        if count > MAX_VALUES:
            break
    return _Extent(count, names, size, faulty)


def _names(value: Any) -> Iterator[str]:
    stack: list[Any] = [value]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            yield from value
        stack.extend(value.values() if isinstance(value, dict) else value if isinstance(value, list) else ())


def _largest(arguments: dict[str, Any]) -> str:
    """Of the arguments the one that is too much, when it is one; else all are."""
    for name, value in arguments.items():
        extent = _look({"": value})
        if extent.values > MAX_VALUES or extent.names > MAX_NAMES or extent.name_bytes > MAX_NAME_BYTES:
            return name[:MAX_FIELD]
    return "(root)"


def _faults(value: Any, path: str) -> Iterator[FieldError]:
    if isinstance(value, dict):
        for key, child in value.items():
            yield from _faults(child, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from _faults(child, f"{path}[{index}]")
    elif message := _fault(value):
        yield FieldError(path, message)


def _fault(value: Any) -> str | None:
    if isinstance(value, int) and abs(value) > MAX_INTEGER:
        return "integer beyond 2^53 cannot be represented exactly; send it as a string"
    if isinstance(value, float) and not math.isfinite(value):
        return "number is too large"
    return None
