"""Numbers that do not survive the way to Lua are refused here; everything else is for the tool's schema.

Receives: the arguments of a call, as parsed. Sends: the faults. Does not know about: schemas.
"""

from __future__ import annotations

import math
from typing import Any

from .model import FieldError

MAX_INTEGER = 2**53
"""Lua's numbers are doubles: beyond it neighbours become equal, silently."""


def number_faults(arguments: dict[str, Any]) -> tuple[FieldError, ...]:
    """One fault per number that Lua would round or cannot hold."""
    faults: list[FieldError] = []
    stack: list[tuple[str, Any]] = [("", arguments)]
    while stack:
        path, value = stack.pop()
        if isinstance(value, dict):
            stack.extend((f"{path}.{key}" if path else str(key), child) for key, child in value.items())
        elif isinstance(value, list):
            stack.extend((f"{path}[{index}]", child) for index, child in enumerate(value))
        elif isinstance(value, int) and abs(value) > MAX_INTEGER:
            faults.append(
                FieldError(path, "integer beyond 2^53 cannot be represented exactly; send it as a string")
            )
        elif isinstance(value, float) and not math.isfinite(value):
            faults.append(FieldError(path, "number is too large"))
    return tuple(reversed(faults))
