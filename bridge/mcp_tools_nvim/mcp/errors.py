"""Errors of the editor as JSON-RPC errors, for all methods but `tools/call`, where they are results."""

from __future__ import annotations

from typing import Any

from mcp import MCPError

from .. import jsonrpc
from ..calls.outcomes import error_details
from ..errors import Code, EditorError, EditorGoneError, NoAnswerError
from ..values import Outcome, ToolError
from .request import Context, is_stateless

_MALFORMED = (Code.NOT_FOUND, Code.VALIDATION_ERROR)
_MISSES = (Code.NOT_FOUND, Code.ACCESS_DENIED)


def content_of(outcome: Outcome) -> dict[str, Any]:
    """What a handler gave.

    Raises:
        MCPError: it gave an error.
    """
    if outcome.error is not None:
        raise refusal(outcome.error)
    value: dict[str, Any] = jsonrpc.loads(outcome.text)
    return value


def refusal(error: ToolError) -> MCPError:
    """The name or an argument is wrong, or something else is."""
    code = jsonrpc.INVALID_PARAMS if error.code in _MALFORMED else jsonrpc.INTERNAL_ERROR
    return MCPError(code, error.message, error_details(error))


def resource_refusal(context: Context, uri: str, error: ToolError) -> MCPError:
    """Return why a resource cannot be read.

    All misses look the same, so that a client learns nothing from them. A question that the user did not
    answer with yes is reported: it is asked before anything is read, and the user may have given a reason.
    """
    if error.code in _MISSES and not error.asked:
        code = jsonrpc.INVALID_PARAMS if is_stateless(context) else jsonrpc.RESOURCE_NOT_FOUND
        return MCPError(code, "Resource not found", {"uri": uri})
    if error.code == Code.TOO_LARGE:
        return MCPError(jsonrpc.TOO_LARGE, error.message, error_details(error))
    return MCPError(jsonrpc.INTERNAL_ERROR, error.message, error_details(error))


def editor_failure(failure: EditorError) -> ToolError:
    """The editor did not answer, or not as it should."""
    if isinstance(failure, EditorGoneError):
        return ToolError(Code.EDITOR_GONE, "Neovim is gone")
    if isinstance(failure, NoAnswerError):
        return ToolError(Code.EDITOR_BLOCKED, "Neovim does not answer; look for a prompt in it")
    return ToolError(Code.EXECUTION_ERROR, "the plugin failed inside Neovim; see its log")
