"""Errors of Python tools, and their outcomes."""

from __future__ import annotations

import contextlib
import traceback
from typing import Any

from ..errors import Code

MAX_MESSAGE = 1000
"""Maximum characters of an exception's message; the log has the traceback."""
MAX_TEXT = 32_768
"""Maximum characters of a tool's own error message, and of a traceback, which Neovim stores."""

MAX_ERRORS = 100
"""Maximum entries of `errors`."""


class ToolError(Exception):
    """A failure of the tool that the client may read.

    Args:
        message: what happened, and what to do.
        code: one of the codes of `:h mcp-tools-errors`.
        errors: for invalid arguments: `[{"field": …, "message": …}]`.
    """

    def __init__(
        self, message: str, code: str = Code.TOOL_ERROR, errors: list[dict[str, str]] | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = Code(code)
        self.errors = errors


def shortened(text: str, limit: int) -> str:
    """Returns valid UTF-8 text, without its middle when it is too long."""
    if len(text) > limit:
        text = f"{text[: limit // 2]}\n… ({len(text) - limit} characters left out) …\n{text[-(limit // 2) :]}"
    return text.encode("utf-8", "replace").decode()


def text_of(value: object) -> str:
    """Returns a value as text; empty if its `__str__` raises."""
    with contextlib.suppress(BaseException):
        return str(value)
    return ""


def field_errors(given: Any) -> list[dict[str, str]]:
    """Returns the valid entries of `errors`."""
    entries = given if isinstance(given, (list, tuple)) else ()
    return [
        {key: shortened(text_of(entry.get(key, "")), MAX_MESSAGE) for key in ("field", "message")}
        for entry in entries[:MAX_ERRORS]
        if isinstance(entry, dict)
    ]


def trace_of(error: BaseException) -> str:
    """Returns the traceback for the log."""
    with contextlib.suppress(BaseException):
        return shortened("".join(traceback.format_exception(error)), MAX_TEXT)
    return type(error).__name__


def exception_outcome(error: BaseException) -> dict[str, Any]:
    """Returns the outcome of a call that raised an exception; never raises.

    A `ToolError` is sent as it is. Any other exception is a defect of the tool: the client gets its message,
    and the log its traceback.
    """
    if isinstance(error, ToolError) and isinstance(getattr(error, "code", None), Code):
        message = shortened(text_of(error.message), MAX_TEXT)
        outcome = {"kind": "error", "code": str(error.code), "message": message}
        errors = field_errors(error.errors)
        return outcome | ({"errors": errors} if errors else {})
    lines = text_of(error).splitlines()
    name = type(error).__name__
    summary = f"{name}: {lines[0][:MAX_MESSAGE]}" if lines and lines[0] else name
    return {
        "kind": "error",
        "code": str(Code.EXECUTION_ERROR),
        "message": shortened(f"Tool execution error: {summary}", MAX_TEXT),
        "trace": trace_of(error),
    }
