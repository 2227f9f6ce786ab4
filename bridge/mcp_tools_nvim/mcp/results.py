"""Outcomes of Neovim as MCP results and JSON-RPC errors."""

from __future__ import annotations

from typing import Any

from mcp import MCPError

from .. import jsonrpc
from ..calls.call import PLUGIN_FAILED
from ..errors import Code, EditorError, EditorGoneError, NoAnswerError
from ..values import Outcome, ToolError
from .dispatch import RequestContext, is_stateless

ERROR_META = "mcp-tools.nvim/error"
"""Key in `_meta` of an error's details, if an output schema keeps them out of `structuredContent`."""

_INVALID_PARAMS = (Code.NOT_FOUND, Code.VALIDATION_ERROR)
_HIDDEN = (Code.NOT_FOUND, Code.ACCESS_DENIED)


def tool_result(outcome: Outcome) -> dict[str, Any]:
    """Returns the MCP result of a tool call, failed or not."""
    if outcome.error is not None:
        return _failure(outcome.error, outcome.schema_bound)
    if outcome.kind == "content":
        content: dict[str, Any] = {"resultType": "complete"}
        content.update(jsonrpc.loads(outcome.text))
        return content
    if outcome.kind == "empty":
        return {"resultType": "complete", "content": []}
    result: dict[str, Any] = {"resultType": "complete", "content": [{"type": "text", "text": outcome.text}]}
    if outcome.kind == "json" and outcome.structured:
        result["structuredContent"] = jsonrpc.loads(outcome.text)
    return result


def _failure(error: ToolError, schema_bound: bool) -> dict[str, Any]:
    result: dict[str, Any] = {
        "resultType": "complete",
        "content": [{"type": "text", "text": f"Error: {error.message}"}],
        "isError": True,
    }
    if schema_bound:
        result["_meta"] = {ERROR_META: error.details()}
    else:
        result["structuredContent"] = error.details()
    return result


def content_or_raise(outcome: Outcome) -> dict[str, Any]:
    """Returns the value of an outcome whose text is JSON.

    Raises:
        MCPError: the outcome is an error.
    """
    if outcome.error is not None:
        code = jsonrpc.INVALID_PARAMS if outcome.error.code in _INVALID_PARAMS else jsonrpc.INTERNAL_ERROR
        raise MCPError(code, outcome.error.message, outcome.error.details())
    value: dict[str, Any] = jsonrpc.loads(outcome.text)
    return value


def resource_error(context: RequestContext, uri: str, error: ToolError) -> MCPError:
    """Returns the JSON-RPC error for a resource that cannot be read.

    Missing and forbidden resources get the same error, so that a client cannot tell them apart. A refusal by
    the user is reported: it comes before anything is read, and the user may have given a reason.
    """
    if error.code in _HIDDEN and not error.refused_by_user:
        code = jsonrpc.INVALID_PARAMS if is_stateless(context) else jsonrpc.RESOURCE_NOT_FOUND
        return MCPError(code, "Resource not found", {"uri": uri})
    if error.code == Code.TOO_LARGE:
        return MCPError(jsonrpc.TOO_LARGE, error.message, error.details())
    return MCPError(jsonrpc.INTERNAL_ERROR, error.message, error.details())


def editor_failure(failure: EditorError) -> ToolError:
    """Returns the error for a failed request to Neovim."""
    if isinstance(failure, EditorGoneError):
        return ToolError(Code.EDITOR_GONE, "Neovim has exited")
    if isinstance(failure, NoAnswerError):
        return ToolError(Code.EDITOR_BLOCKED, "Neovim does not answer; look for a prompt in it")
    return ToolError(Code.EXECUTION_ERROR, PLUGIN_FAILED)
