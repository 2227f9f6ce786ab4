"""`resources/*` but for subscriptions: lists, templates, reads."""

from __future__ import annotations

import asyncio
from typing import Any

import mcp_types as types
from mcp import MCPError

from ... import jsonrpc
from ...calls.runner import Calls
from ...neovim import Editor
from ...rate_limit import TokenBucket
from ...values import Limits
from .. import execute
from ..errors import content_of, resource_refusal
from ..pages import UNCACHED, Pages
from ..request import Context, caller_of, scope_of


class Resources:
    """See the head of this file."""

    def __init__(self, editor: Editor, calls: Calls, limits: Limits) -> None:
        self.fixed = Pages(editor, "resources", "resources", "uri")
        self.templates = Pages(editor, "templates", "resourceTemplates", "uriTemplate")
        self.fixed.together = self.templates.together = (self.fixed, self.templates)
        self._calls = calls
        self._limits = limits
        self._time = asyncio.get_running_loop().time

    async def read(self, context: Context, params: types.ReadResourceRequestParams) -> dict[str, Any]:
        """`resources/read`."""
        self._count(context)
        uri = params.uri
        outcome = await execute.run(self._calls, caller_of(context), uri, {}, "resource")
        if outcome.error is not None:
            raise resource_refusal(context, uri, outcome.error)
        return UNCACHED | content_of(outcome)

    def _count(self, context: Context) -> None:
        scope, now = scope_of(context), self._time()
        bucket = scope.get("reads")
        if bucket is None:
            limits = self._limits
            bucket = scope["reads"] = TokenBucket(limits.resource_rate, limits.resource_burst, now)
        if wait := bucket.take(now):
            text = f"Too many resource reads; at most {self._limits.resource_rate} per second"
            raise MCPError(jsonrpc.RATE_LIMITED, text, {"retryAfterMs": wait})
