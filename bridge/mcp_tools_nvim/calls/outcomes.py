"""Outcomes that the bridge itself makes, and how an error looks to programs."""

from __future__ import annotations

from typing import Any

from ..errors import Code
from ..values import FieldError, Outcome, ToolError


def failed(code: Code, message: str) -> Outcome:
    """A failure with that code."""
    return Outcome("failed", error=ToolError(code, message))


def gone() -> Outcome:
    """There is no editor any more."""
    text = "Neovim is gone (closed or crashed), and the call with it; open it in this project and try again"
    return failed(Code.EDITOR_GONE, text)


def error_details(error: ToolError) -> dict[str, Any]:
    """`{code, message, errors?}`: an error for programs."""
    details: dict[str, Any] = {"code": str(error.code), "message": error.message}
    if error.errors:
        details["errors"] = [_field(fault) for fault in error.errors]
    return details


def _field(fault: FieldError) -> dict[str, str]:
    return {"field": fault.field, "message": fault.message}
