"""Outcomes made by the bridge, and errors as data."""

from __future__ import annotations

from typing import Any

from ..errors import Code
from ..values import FieldError, Outcome, ToolError


def failed(code: Code, message: str) -> Outcome:
    """Returns a failed outcome."""
    return Outcome("failed", error=ToolError(code, message))


def gone() -> Outcome:
    """Returns the outcome of a call whose Neovim has exited."""
    text = "Neovim has exited or crashed during the call; open it in this project and try again"
    return failed(Code.EDITOR_GONE, text)


def error_details(error: ToolError) -> dict[str, Any]:
    """Returns an error as `{code, message, errors?}`."""
    details: dict[str, Any] = {"code": str(error.code), "message": error.message}
    if error.errors:
        details["errors"] = [_field(fault) for fault in error.errors]
    return details


def _field(fault: FieldError) -> dict[str, str]:
    return {"field": fault.field, "message": fault.message}
