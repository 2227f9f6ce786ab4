"""Numbers that do not survive the way to Lua are refused here; everything else is for the tool's schema.

Receives: the arguments of a call, as parsed. Sends: the faults. Does not know about: schemas.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from ..model import FieldError

MAX_INTEGER = 2**53
"""Lua's numbers are doubles: beyond it neighbours become equal, silently."""


def number_faults(arguments: dict[str, Any]) -> tuple[FieldError, ...]:
    """One fault per number that Lua would round or cannot hold."""
    return tuple(_faults(arguments, "")) if _has_fault(arguments) else ()


def _has_fault(arguments: dict[str, Any]) -> bool:
    """The same question without the paths: nearly every call has no fault."""
    stack: list[Any] = [arguments]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            stack.extend(value.values())
        elif isinstance(value, list):
            stack.extend(value)
        elif _fault(value):
            return True
    return False


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
