"""What ends a call of a Python tool without a result.

Receives: exceptions. Sends: what crosses to the editor of them.
Does not know about: threads, loops, who called.
"""

from __future__ import annotations

import traceback
from typing import Any

from ..errors import Code

MAX_MESSAGE = 1000
"""Characters of a message; the traceback in the log has all of it."""


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


def outcome_of(error: BaseException) -> dict[str, Any]:
    """An exception as the outcome of its call.

    A tool's own error is what it says. Anything else is a defect of the tool: the client gets the message,
    the log the traceback.
    """
    if isinstance(error, ToolError):
        outcome = {"kind": "error", "code": str(error.code), "message": error.message}
        return outcome | ({"errors": error.errors} if error.errors else {})
    lines = str(error).splitlines()
    name = type(error).__name__
    said = f"{name}: {lines[0]}" if lines and lines[0] else name
    trace = "".join(traceback.format_exception(error)).encode("utf-8", "replace").decode()
    return {
        "kind": "error",
        "code": str(Code.EXECUTION_ERROR),
        "message": f"Tool execution error: {said[:MAX_MESSAGE]}".encode("utf-8", "replace").decode(),
        "trace": trace,
    }
