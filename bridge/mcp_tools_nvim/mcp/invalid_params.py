"""What is wrong with the parameters of a request, by field."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

MOST = 5
"""Fields that are named. An answer that may be several things is wrong in each of their fields."""

LONGEST = 200
"""Characters of a field; its names come from the client."""


def describe(failure: ValidationError) -> tuple[str, dict[str, Any]]:
    """The message of the error, and its data."""
    faults = [
        {"field": _path(fault["loc"]), "message": fault["msg"]}
        for fault in failure.errors(include_url=False, include_context=False, include_input=False)[:MOST]
    ]
    text = "; ".join(f"{fault['field']}: {fault['message']}" for fault in faults)
    return f"Invalid request parameters: {text}", {"errors": faults}


def _path(location: tuple[int | str, ...]) -> str:
    parts = location[1:] if location[:1] == ("params",) else location
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
    return path.removeprefix(".")[:LONGEST] or "(root)"
