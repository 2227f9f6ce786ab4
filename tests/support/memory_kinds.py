"""The tools, resources, templates and prompts of the editor in memory, as Python callables."""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from mcp_tools_nvim.errors import Code
from mcp_tools_nvim.values import CallKind, CallRequest, Kind, Outcome, Scope, ToolError

if TYPE_CHECKING:
    import asyncio

    from .memory import ToolContext

Function = Callable[["ToolContext", dict[str, Any]], Any]
Complete = Callable[[str, dict[str, str]], Any]
"""`complete(prefix, arguments)` → values."""

KEYS: dict[Kind, str] = {"tools": "name", "resources": "uri", "templates": "uriTemplate", "prompts": "name"}


@dataclass(slots=True)
class Tool:
    """A tool, resource, template or prompt: `function(ctx, arguments)`, plain (answers at once) or `async`.

    Attributes:
        arguments: replace those of the request.
        complete: for arguments of prompts and variables of templates.
        agent: the only agent that may call it.
    """

    name: str
    function: Function
    definition: dict[str, Any]
    timeout: int | None = None
    approval: Callable[[], asyncio.Future[bool]] | None = None
    arguments: dict[str, Any] | None = None
    complete: dict[str, Complete] = field(default_factory=dict)
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
        if request.kind == "prompt":
            known = self.of["prompts"].get(request.name)
            return known or ToolError(Code.NOT_FOUND, f"Unknown prompt: {request.name}")
        if request.kind == "completion":
            return self._completion(request.arguments)
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

    def _completion(self, given: dict[str, Any]) -> Tool | ToolError:
        ref, argument = given["ref"], given["argument"]
        known = (
            self.of["prompts"].get(ref["name"])
            if ref["type"] == "prompt"
            else self.of["templates"].get(ref["uri"]) or self.of["resources"].get(ref["uri"])
        )
        if known is None:
            return ToolError(Code.NOT_FOUND, "there is no such prompt or resource template")
        complete = known.complete.get(argument["name"])
        arguments = given.get("context", {}).get("arguments", {})
        values = [] if complete is None else complete(argument["value"], arguments)
        return Tool(known.name, lambda ctx, _: values, {})


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
        return _content({"contents": value if isinstance(value, list) else [_contents(tool, uri, value)]})
    if kind == "prompt":
        block = {"role": "user", "content": {"type": "text", "text": value}}
        return _content({"messages": value if isinstance(value, list) else [block]})
    if kind == "completion":
        more = {"total": len(value)} | ({"hasMore": True} if len(value) > 100 else {})
        return _content({"values": value[:100]} | more)
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


def _content(value: dict[str, Any]) -> Outcome:
    return Outcome("done", "content", _dumps(value))


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
