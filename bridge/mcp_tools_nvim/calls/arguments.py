"""Refuses arguments with numbers that Lua cannot represent, or too many values; schemas check the rest."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice
from typing import Any

from ..errors import Code
from ..values import FieldError, Outcome, ToolError

MAX_INTEGER = 2**53
"""Lua's numbers are doubles, which cannot represent all larger integers."""

MAX_VALUES = 10_000
"""Maximum values in the arguments of one call, which Neovim's main thread handles in 5 ms. A string of any
length is one value."""

MAX_NAMES, MAX_NAME_BYTES = 1000, 64 * 1024
"""Maximum different names in the objects of one call, and characters of all of them, since Neovim may check
each name as a path."""

MAX_FIELD = 200
"""Maximum characters of a field's path in an error."""

MAX_FAULTS = 100
"""Maximum reported faults."""


def faults_of(arguments: dict[str, Any]) -> tuple[FieldError, ...]:
    """Returns one fault per number that Lua cannot represent, or a single one for too many values or names.

    The work is bounded by `MAX_VALUES`, however large the arguments are.
    """
    values, names, name_bytes, is_faulty = _measure(arguments)
    if values > MAX_VALUES:
        text = f"has more than {MAX_VALUES} values; send fewer, or combine them into one text"
        return (FieldError(_largest(arguments), text),)
    if (names > MAX_NAMES or name_bytes > MAX_NAME_BYTES) and _has_too_many_names(arguments):
        named = [name for name, value in arguments.items() if _has_too_many_names({"": value})]
        field = _cut(named[0]) if named else "(root)"
        text = f"has more than {MAX_NAMES} different names, or {MAX_NAME_BYTES} characters of names"
        return (FieldError(field, f"{text}; send fewer, or a list of pairs, or one text"),)
    return tuple(islice(_faults(arguments), MAX_FAULTS)) if is_faulty else ()


def fits(value: Any) -> bool:
    """Returns whether a value contains at most `MAX_VALUES` values."""
    return _measure({"": value})[0] <= MAX_VALUES


def refuse_arguments(arguments: dict[str, Any]) -> Outcome | None:
    """Returns the outcome of a call with invalid arguments; None when they are valid."""
    faults = faults_of(arguments)
    if not faults:
        return None
    text = "; ".join(f"{fault.field}: {fault.message}" for fault in faults[:5])
    return Outcome("failed", error=ToolError(Code.VALIDATION_ERROR, text, faults))


def _measure(arguments: dict[str, Any]) -> tuple[int, int, int, bool]:
    """Measures arguments: values, names, characters of the names, whether a value has a fault.

    Stops after `MAX_VALUES` values.
    """
    stack: list[Any] = [arguments]
    count, names, size, faulty = 0, 0, 0, False
    while stack:
        value = stack.pop()
        count += len(value)
        if count > MAX_VALUES:
            break
        if type(value) is dict:
            names += len(value)
            size += sum(map(len, value))
            value = value.values()
        for child in value:
            kind = type(child)
            if kind is dict or kind is list:
                stack.append(child)
            elif kind is not str and _fault(child):
                faulty = True
    return count, names, size, faulty


def _largest(arguments: dict[str, Any]) -> str:
    """Returns the name of an argument with too many values; the root if only all together have too many."""
    count = 0
    for name, value in arguments.items():
        count += 1 + _measure({"": value})[0]
        if count > MAX_VALUES:
            return _cut(name) if not fits(value) else "(root)"
    return "(root)"


def _has_too_many_names(value: Any) -> bool:
    """Returns whether a value has too many different names. It must have at most `MAX_VALUES` values."""
    names: set[str] = set()
    stack: list[Any] = [value]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            names.update(value)
            stack.extend(value.values())
        elif isinstance(value, list):
            stack.extend(value)
    return len(names) > MAX_NAMES or sum(map(len, names)) > MAX_NAME_BYTES


def _faults(arguments: dict[str, Any]) -> Iterator[FieldError]:
    """Finds the faults in at most `MAX_VALUES` values."""
    stack: list[tuple[Any, str]] = [(arguments, "")]
    while stack:
        value, path = stack.pop()
        if isinstance(value, dict):
            inside = [(child, _cut(f"{path}.{key}" if path else key)) for key, child in value.items()]
            stack.extend(reversed(inside))
        elif isinstance(value, list):
            stack.extend(reversed([(child, _cut(f"{path}[{at}]")) for at, child in enumerate(value)]))
        elif message := _fault(value):
            yield FieldError(path, message)


def _cut(path: str) -> str:
    return path if len(path) <= MAX_FIELD else path[:MAX_FIELD]


def _fault(value: Any) -> str | None:
    if isinstance(value, int) and abs(value) > MAX_INTEGER:
        return "integer beyond 2^53 cannot be represented exactly; send it as a string"
    if isinstance(value, float) and not math.isfinite(value):
        return "number is too large"
    return None
