"""Arguments that do not survive the way to Lua are refused here; everything else is for the tool's schema.

Receives: the arguments of a call, as parsed. Sends: the faults. Does not know about: schemas.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice
from typing import Any

from ..errors import Code
from ..model import FieldError, Outcome, ToolError

MAX_INTEGER = 2**53
"""Lua's numbers are doubles: beyond it neighbours become equal, silently."""

MAX_VALUES = 20_000
"""Values that the arguments of one call may hold: the editor looks at each on its main thread, and a million
of them takes it a second. What is long is text, and that is one value."""

MAX_FAULTS = 100
"""Faults that are told; a client needs to see the kind, not all of them."""


def faults_of(arguments: dict[str, Any]) -> tuple[FieldError, ...]:
    """One fault per number that Lua would round or cannot hold; or one, when there are too many values."""
    count, faulty = _look(arguments)
    if count > MAX_VALUES:
        text = f"has more than {MAX_VALUES} values; send fewer, or what belongs together as one text"
        return (FieldError("(root)", text),)
    return tuple(islice(_faults(arguments, ""), MAX_FAULTS)) if faulty else ()


def refused(arguments: dict[str, Any]) -> Outcome | None:
    """The outcome of a call with such arguments; None when they are in order."""
    faults = faults_of(arguments)
    if not faults:
        return None
    text = "; ".join(f"{fault.field}: {fault.message}" for fault in faults[:5])
    return Outcome("failed", error=ToolError(Code.VALIDATION_ERROR, text, faults))


def _look(arguments: dict[str, Any]) -> tuple[int, bool]:
    """How many values there are, as far as they count, and whether one has a fault: nearly no call has."""
    stack: list[Any] = [arguments]
    count, faulty = 0, False
    while stack:
        value = stack.pop()
        kind = type(value)
        if kind is str:
            continue
        if kind is dict or kind is list:
            count += len(value)
            if count > MAX_VALUES:
                return count, faulty
            stack.extend(value.values() if kind is dict else value)
        elif _fault(value):
            faulty = True
    return count, faulty


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
