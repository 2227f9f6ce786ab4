"""`tools/list` and `tools/call`."""

from __future__ import annotations

from typing import Any

import mcp_types as types
from mcp import MCPError

from ... import jsonrpc
from ...calls.arguments import refused
from ...calls.outcomes import error_details
from ...calls.runner import Calls
from ...errors import Code
from ...neovim import Editor
from ...values import Scope, View
from .. import execute
from ..definitions import Definitions, Listing
from ..inputs import InputRequiredError
from ..pages import Pages
from ..request import Context, caller_of, dispatch_of
from ..tool_results import tool_result


class Tools:
    """See the head of this file; `prefix` stands before the names of tools in lists."""

    def __init__(self, editor: Editor, calls: Calls, prefix: str) -> None:
        self.pages = Pages(editor, "tools", "tools", narrowed=True)
        self._prefix = prefix
        self._calls = calls
        self._schemas: dict[str, dict[str, Any]] = {}
        self._schemas_of: Definitions | None = None

    async def call(self, context: Context, params: types.CallToolRequestParams) -> dict[str, Any]:
        """`tools/call`."""
        arguments = params.arguments or {}
        outcome = dispatch_of(context).early
        if isinstance(outcome, InputRequiredError):
            raise outcome
        if outcome is None:
            outcome = refused(arguments)
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
            self._schemas = _header_schemas(definitions)
        # As the editor finds it: by the listed name, else by the bare one.
        return self._schemas.get(name) or self._schemas.get(self._prefix + name)

    def scoped(self) -> dict[View, Listing]:
        """The lists that are kept for clients that asked for less than there is."""
        return {} if self.pages.views is None else self.pages.views.scoped()

    async def schema(self, name: str, within: Scope | None) -> dict[str, Any] | None:
        """The same, current, for who sees no more than this."""
        views = self.pages.views
        if within is None or views is None:
            await self.pages.listing.ensure()
            return self.input_schema(name)
        listing = views.of(View("", within))
        await listing.ensure()
        schemas = _header_schemas(listing.current)
        return schemas.get(name) or schemas.get(self._prefix + name)


def _header_schemas(definitions: Definitions | None) -> dict[str, dict[str, Any]]:
    if definitions is None or "x-mcp-header" not in definitions.text:
        return {}
    return {item["name"]: item.get("inputSchema", {}) for item in definitions.items}
