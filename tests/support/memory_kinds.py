"""The tools, resources, templates and prompts of the editor in memory, as Python callables."""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mcp_tools_nvim.errors import Code
from mcp_tools_nvim.values import CallKind, CallRequest, Kind, Outcome, Scope, ToolError

if TYPE_CHECKING:
    import asyncio

    from .memory import ToolContext

Function = Callable[["ToolContext", dict[str, Any]], Any]

KEYS: dict[Kind, str] = {"tools": "name", "resources": "uri", "templates": "uriTemplate", "prompts": "name"}


@dataclass(slots=True)
class Tool:
    """A tool, resource, template or prompt: `function(ctx, arguments)`, plain (answers at once) or `async`.

    Attributes:
        arguments: replace those of the request.
        agent: the only agent that may call it.
    """

    name: str
    function: Function
    definition: dict[str, Any]
    timeout: int | None = None
    approval: Callable[[], asyncio.Future[bool]] | None = None
    arguments: dict[str, Any] | None = None
    agent: str | None = None


class Offers:
    """The registered definitions, and the number of subscriptions by URI."""

    def __init__(self) -> None:
        self.of: dict[Kind, dict[str, Tool]] = {kind: {} for kind in KEYS}
        self.subscribed: Counter[str] = Counter()

    def published(self, kind: Kind, scope: Scope | None = None) -> str:
        """The list of one kind, as JSON text."""
        definitions = [tool.definition for tool in self.of[kind].values() if is_shown(tool, scope)]
        return json.dumps(sorted(definitions, key=lambda definition: str(definition[KEYS[kind]])))

    def find(self, request: CallRequest, prefix: str) -> Tool | ToolError:
        """The definition that a request names."""
        if request.kind == "resource":
            return self.resource(request.name) or ToolError(Code.NOT_FOUND, "Resource not found")
        tools = self.of["tools"]
        tool = tools.get(request.name) or tools.get(request.name.removeprefix(prefix))
        if tool is None or not is_shown(tool, request.sender.scope):
            return ToolError(Code.UNKNOWN_TOOL, f"Unknown tool: {request.name}")
        return tool

    def resource(self, uri: str) -> Tool | None:
        """The resource with a URI; values of template variables are its arguments."""
        fixed = self.of["resources"].get(uri)
        if fixed is not None:
            return replace(fixed, arguments={})
        for text, template in self.of["templates"].items():
            pattern = re.sub(r"\\{(\\\+)?(\w+)\\}", r"(?P<\2>.+)", re.escape(text))
            if match := re.fullmatch(pattern, uri):
                return replace(template, arguments=match.groupdict())
        return None


def is_shown(tool: Tool, scope: Scope | None) -> bool:
    """Whether a client with this scope sees a tool; its group is the start of its name."""
    if tool.agent is not None or (scope is not None and scope.agent is not None):
        return scope is not None and tool.agent == scope.agent
    if scope is None:
        return True
    reads = tool.definition.get("annotations", {}).get("readOnlyHint") is True
    named = scope.tools is None or {tool.name, tool.name.partition("_")[0]} & set(scope.tools)
    return bool(named) and (reads or not scope.read_only)


def outcome_of(kind: CallKind, tool: Tool, uri: str, value: Any) -> Outcome:
    """The outcome of a call that returned `value`."""
    if isinstance(value, Outcome):
        return value
    if kind == "resource":
        contents = value if isinstance(value, list) else [_contents(tool, uri, value)]
        return Outcome("done", "content", _dumps({"contents": contents}))
    if value is None:
        return Outcome("done")
    if isinstance(value, str):
        return Outcome("done", "text", value)
    return Outcome("done", "json", _dumps(value), structured="outputSchema" in tool.definition)


def _contents(tool: Tool, uri: str, value: str | bytes) -> dict[str, Any]:
    shown = {"uri": uri, "mimeType": tool.definition.get("mimeType", "text/plain")}
    if isinstance(value, bytes):
        return shown | {"blob": base64.b64encode(value).decode()}
    return shown | {"text": value}


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
