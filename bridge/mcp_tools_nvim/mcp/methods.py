"""The MCP methods of tools, resources and prompts; `server.py` registers them."""

from __future__ import annotations

import asyncio
from typing import Any

import mcp_types as types
from mcp import MCPError

from .. import jsonrpc
from ..calls.arguments import refuse_arguments
from ..calls.runner import Calls
from ..errors import Code
from ..neovim.nvim import NvimEditor
from ..rate_limit import TokenBucket
from ..values import Limits, Scope, View
from .dispatch import RequestContext, dispatch_of, requester_of, session_store
from .inputs import UNFINISHED, run_call
from .pages import NOT_CACHEABLE, DefinitionList, Definitions, Pages
from .results import content_or_raise, resource_error, tool_result
from .skills import URI as SKILL_URI
from .skills import Skills
from .tasks import Tasks


class Tools:
    """`tools/list` and `tools/call`; `prefix` is prepended to tool names in lists."""

    def __init__(self, editor: NvimEditor, calls: Calls, prefix: str, tasks: Tasks) -> None:
        self._tasks = tasks
        self.pages = Pages(editor, "tools", "tools", per_client=True)
        self._prefix = prefix
        self._calls = calls
        self._schemas: dict[str, dict[str, Any]] = {}
        self._schemas_from: Definitions | None = None

    async def call(self, context: RequestContext, params: types.CallToolRequestParams) -> dict[str, Any]:
        """Handles `tools/call`."""
        arguments = params.arguments or {}
        outcome = dispatch_of(context).fast_outcome
        if isinstance(outcome, UNFINISHED):
            raise outcome
        if outcome is None:
            outcome = refuse_arguments(arguments)
        if outcome is None:
            outcome = await run_call(
                self._calls, requester_of(context), params.name, arguments, tasks=self._tasks
            )
        if outcome.error is not None and outcome.error.code == Code.UNKNOWN_TOOL:
            raise MCPError(jsonrpc.INVALID_PARAMS, outcome.error.message, outcome.error.details())
        return tool_result(outcome)

    def input_schema(self, name: str) -> dict[str, Any] | None:
        """Returns the input schema of a listed tool; None if unknown, or if no tool has parameter headers."""
        definitions = self.pages.listing.current
        if definitions is not self._schemas_from:
            self._schemas_from = definitions
            self._schemas = _header_schemas(definitions)
        # Like Neovim: as a listed name first, then as a name without the prefix.
        return self._schemas.get(name) or self._schemas.get(self._prefix + name)

    def scoped(self) -> dict[View, DefinitionList]:
        """Returns the lists of clients with a scope."""
        return {} if self.pages.views is None else self.pages.views.scoped()

    async def names(self, view: View) -> list[str] | None:
        """Returns the names of the tools that a client sees; None if Neovim has not listed them."""
        listing = self.pages.listing if self.pages.views is None else self.pages.views.of(view)
        await listing.ensure()
        return None if listing.current is None else listing.current.names

    async def schema(self, name: str, scope: Scope | None) -> dict[str, Any] | None:
        """Returns `input_schema` of a tool in a scope, from an up-to-date list."""
        views = self.pages.views
        if scope is None or views is None:
            if self.pages.listing.stale:
                await self.pages.listing.ensure()
            return self.input_schema(name)
        listing = views.of(View("", scope))
        await listing.ensure()
        schemas = _header_schemas(listing.current)
        return schemas.get(name) or schemas.get(self._prefix + name)


def _header_schemas(definitions: Definitions | None) -> dict[str, dict[str, Any]]:
    if definitions is None or "x-mcp-header" not in definitions.text:
        return {}
    return {item["name"]: item.get("inputSchema", {}) for item in definitions.items}


class Resources:
    """Lists and reads resources; subscriptions are in `subscriptions.py`."""

    def __init__(self, editor: NvimEditor, calls: Calls, limits: Limits, skills: Skills) -> None:
        self._skills = skills
        self.fixed = Pages(editor, "resources", "resources", "uri")
        self.templates = Pages(editor, "templates", "resourceTemplates", "uriTemplate")
        self.fixed.filterable = self.templates.filterable = (self.fixed, self.templates)
        self._calls = calls
        self._limits = limits
        self._time = asyncio.get_running_loop().time

    async def read(self, context: RequestContext, params: types.ReadResourceRequestParams) -> dict[str, Any]:
        """Handles `resources/read`."""
        self._limit_rate(context)
        uri = params.uri
        if uri == SKILL_URI:
            return self._skills.read()
        outcome = await run_call(self._calls, requester_of(context), uri, {}, "resource")
        if outcome.error is not None:
            raise resource_error(context, uri, outcome.error)
        return NOT_CACHEABLE | content_or_raise(outcome)

    def _limit_rate(self, context: RequestContext) -> None:
        store, now = session_store(context), self._time()
        bucket = store.get("reads")
        if bucket is None:
            limits = self._limits
            bucket = store["reads"] = TokenBucket(limits.resource_rate, limits.resource_burst, now)
        if wait := bucket.take(now):
            text = f"Too many resource reads; the limit is {self._limits.resource_rate} per second"
            raise MCPError(jsonrpc.RATE_LIMITED, text, {"retryAfterMs": wait})


class Prompts:
    """`prompts/*`, and `completion/complete` for arguments of prompts and variables of templates."""

    def __init__(self, editor: NvimEditor, calls: Calls) -> None:
        self.pages = Pages(editor, "prompts", "prompts")
        self._calls = calls

    async def get(self, context: RequestContext, params: types.GetPromptRequestParams) -> dict[str, Any]:
        """Handles `prompts/get`."""
        arguments = dict(params.arguments or {})
        outcome = refuse_arguments(arguments)
        if outcome is None:
            outcome = await run_call(self._calls, requester_of(context), params.name, arguments, "prompt")
        return {"resultType": "complete"} | content_or_raise(outcome)

    async def complete(self, context: RequestContext, params: types.CompleteRequestParams) -> dict[str, Any]:
        """Handles `completion/complete`."""
        ref: dict[str, Any]
        if isinstance(params.ref, types.PromptReference):
            name, ref = params.ref.name, {"type": "prompt", "name": params.ref.name}
        else:
            name, ref = params.ref.uri, {"type": "resource", "uri": params.ref.uri}
        given: dict[str, Any] = {
            "ref": ref,
            "argument": {"name": params.argument.name, "value": params.argument.value},
        }
        if params.context is not None and params.context.arguments:
            given["context"] = {"arguments": dict(params.context.arguments)}
        outcome = refuse_arguments(given)
        if outcome is None:
            outcome = await run_call(self._calls, requester_of(context), name, given, "completion")
        return {"resultType": "complete", "completion": content_or_raise(outcome)}
