"""`tools/list` and `tools/call`.

Receives: requests, typed by the SDK. Sends: calls; what goes wrong in a tool is a result, what is wrong with
the request an error. Does not know about: any tool by name.
"""

from __future__ import annotations

from typing import Any

import mcp_types as types
from mcp import MCPError

from ... import jsonrpc
from ...calls.arguments import refused
from ...calls.outcomes import error_details
from ...calls.runner import Calls
from ...editor import Editor
from ...errors import Code
from .. import execute
from ..definitions import Definitions
from ..inputs import InputRequiredError
from ..pages import Pages
from ..request import Context, caller_of, dispatch_of
from ..tool_results import tool_result


class Tools:
    """See the head of this file; `prefix` stands before the names of tools in lists."""

    def __init__(self, editor: Editor, calls: Calls, prefix: str) -> None:
        self.pages = Pages(editor, "tools", "tools")
        self._prefix = prefix
        self._calls = calls
        self._schemas: dict[str, dict[str, Any]] = {}
        self._schemas_of: Definitions | None = None

    async def call(self, context: Context, params: types.CallToolRequestParams) -> dict[str, Any]:
        """`tools/call`."""
        arguments = params.arguments or {}
        if failure := refused(arguments):
            return tool_result(failure)
        outcome = dispatch_of(context).early
        if isinstance(outcome, InputRequiredError):
            raise outcome
        if outcome is None:
            outcome = await execute.run(self._calls, caller_of(context), params.name, arguments)
        if outcome.error is not None and outcome.error.code == Code.UNKNOWN_TOOL:
            raise MCPError(jsonrpc.INVALID_PARAMS, outcome.error.message, error_details(outcome.error))
        return tool_result(outcome)

    def input_schema(self, name: str) -> dict[str, Any] | None:
        """The schema of a tool that asks for parameter headers; None for others: none can be wrong there."""
        definitions = self.pages.listing.current
        if definitions is not self._schemas_of:
            self._schemas_of = definitions
            self._schemas = {}
            if definitions is not None and "x-mcp-header" in definitions.text:
                self._schemas = {item["name"]: item.get("inputSchema", {}) for item in definitions.items}
        # As the editor finds it: by the listed name, else by the bare one.
        return self._schemas.get(name) or self._schemas.get(self._prefix + name)
