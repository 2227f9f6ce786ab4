"""What ends a call of a Python tool without a result."""

from __future__ import annotations

import contextlib
import traceback
from typing import Any

from ..errors import Code

MAX_MESSAGE = 1000
"""Characters of an exception's message; the traceback in the log has more of it."""
MAX_TEXT = 32_768
"""Characters of what a tool says of its own failure, and of a traceback: the editor takes them up."""

MAX_ERRORS = 100
"""Entries of `errors`."""


class ToolError(Exception):
    """The tool's own failure, for the client to read.

    Args:
        message: what went wrong, and what to do about it.
        code: one of the codes of `:h mcp-tools-errors`.
        errors: for arguments that do not fit: `[{"field": …, "message": …}]`.
    """

    def __init__(
        self, message: str, code: str = Code.TOOL_ERROR, errors: list[dict[str, str]] | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = Code(code)
        self.errors = errors


def shortened(text: str, limit: int) -> str:
    """Text as UTF-8 can have it, without its middle when it is too long."""
    if len(text) > limit:
        text = f"{text[: limit // 2]}\n… ({len(text) - limit} characters left out) …\n{text[-(limit // 2) :]}"
    return text.encode("utf-8", "replace").decode()


def text_of(value: object) -> str:
    """A value as text; a person's `__str__` may raise anything."""
    with contextlib.suppress(BaseException):
        return str(value)
    return ""


def field_errors(given: Any) -> list[dict[str, str]]:
    """Those entries of `errors` that are what they should be."""
    entries = given if isinstance(given, (list, tuple)) else ()
    return [
        {key: shortened(text_of(entry.get(key, "")), MAX_MESSAGE) for key in ("field", "message")}
        for entry in entries[:MAX_ERRORS]
        if isinstance(entry, dict)
    ]


def trace_of(error: BaseException) -> str:
    """The traceback, for the log."""
    with contextlib.suppress(BaseException):
        return shortened("".join(traceback.format_exception(error)), MAX_TEXT)
    return type(error).__name__


def exception_outcome(error: BaseException) -> dict[str, Any]:
    """An exception as the outcome of its call; whatever it is, this raises nothing.

    A tool's own error is what it says. Anything else is a defect of the tool: the client gets the message,
    the log the traceback.
    """
    if isinstance(error, ToolError) and isinstance(getattr(error, "code", None), Code):
        said = shortened(text_of(error.message), MAX_TEXT)
        outcome = {"kind": "error", "code": str(error.code), "message": said}
        errors = field_errors(error.errors)
        return outcome | ({"errors": errors} if errors else {})
    lines = text_of(error).splitlines()
    name = type(error).__name__
    said = f"{name}: {lines[0][:MAX_MESSAGE]}" if lines and lines[0] else name
    return {
        "kind": "error",
        "code": str(Code.EXECUTION_ERROR),
        "message": shortened(f"Tool execution error: {said}", MAX_TEXT),
        "trace": trace_of(error),
    }
