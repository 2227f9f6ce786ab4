"""How a call's outcome looks to an MCP client."""

from __future__ import annotations

from typing import Any

from .. import jsonrpc
from ..calls.outcomes import error_details
from ..values import Outcome, ToolError

ERROR_META = "mcp-tools.nvim/error"
"""Where an error's code stands when `structuredContent` is bound to the tool's own schema."""


def tool_result(outcome: Outcome) -> dict[str, Any]:
    """The result of a call that reached a tool, failed or not."""
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
        result["_meta"] = {ERROR_META: error_details(error)}
    else:
        result["structuredContent"] = error_details(error)
    return result
