"""An MCP server on the official Python SDK, over stdio, with every kind of definition and result.

python python_server.py JOURNAL
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import sys
from typing import Any

import mcp_types as t
from mcp import MCPError
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.stdio import stdio_server

PIXEL = base64.b64encode(b"\x89PNG pixel").decode()
INTEGER: dict[str, Any] = {"type": "integer"}


def fields(*required: str, **properties: Any) -> dict[str, Any]:
    """The schema of an object."""
    schema = {"type": "object", "properties": properties}
    return schema | ({"required": list(required)} if required else {})


NO_ARGUMENTS = fields()
TEXT = fields("text", text={"type": "string"})

TOOLS: dict[str, dict[str, Any]] = {
    "echo": {"inputSchema": TEXT, "description": "Echoes.", "annotations": {"readOnlyHint": True}},
    "add": {"inputSchema": fields("a", a=INTEGER, b=INTEGER | {"default": 2})},
    "large": {"inputSchema": fields(bytes=INTEGER)},
    "read": {"inputSchema": fields(path={"type": "string"})},
}
TOOLS["add"]["outputSchema"] = fields("sum", sum=INTEGER)
PLAIN = "picture fail refuse count hold die grow environment ask sample whisper touch"
for name in PLAIN.split():
    TOOLS[name] = {"inputSchema": NO_ARGUMENTS}


def note(*what: Any) -> None:
    with open(sys.argv[1], "a") as journal:
        journal.write(json.dumps(what) + "\n")


FRESH: dict[str, Any] = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


def text(value: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": value}], "resultType": "complete"}


async def list_tools(_: Any, __: Any) -> Any:
    tools = [{"name": name, **definition} for name, definition in TOOLS.items()]
    return {"tools": tools, **FRESH}


async def call_tool(ctx: Any, params: Any) -> Any:
    arguments = params.arguments or {}
    note("call", params.name, arguments)
    session = ctx.session
    match params.name:
        case "echo":
            return text(arguments["text"])
        case "add" if not isinstance(arguments["a"], int):
            return {**text("a: must be an integer"), "isError": True}
        case "add":
            total = arguments["a"] + arguments.get("b", 2)
            return {**text(str(total)), "structuredContent": {"sum": total}}
        case "picture":
            about: dict[str, Any] = {"annotations": {"audience": ["user"], "priority": 0.5}}
            about["_meta"] = {"a/b": [None, {}, 2**60 + 1]}
            image = {"type": "image", "data": PIXEL, "mimeType": "image/png", **about}
            link = {"type": "resource_link", "uri": "test://static", "name": "static", **about}
            inner = {"uri": "test://static", "text": "as it is", "_meta": {"of": "it"}}
            contents = {"type": "resource", "resource": inner, **about}
            return {"content": [image, link, contents], "resultType": "complete"}
        case "fail":
            return {**text("on purpose"), "isError": True}
        case "refuse":
            raise MCPError(-32000, "not today")
        case "count":
            for step in range(1, 4):
                await session.report_progress(step, 3, f"step {step}")
            return text("counted")
        case "hold":
            try:
                await asyncio.sleep(600)
            except asyncio.CancelledError:
                note("cancelled")
                raise
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "grow":
            TOOLS["grown"] = {"inputSchema": NO_ARGUMENTS}
            await session._connection.notify("notifications/tools/list_changed", None)
            return text("grown")
        case "touch":
            await session._connection.notify("notifications/resources/updated", {"uri": "test://static"})
            return text("touched")
        case "large":
            return text("x" * arguments["bytes"])
        case "environment":
            return text(json.dumps(dict(os.environ)))
        case "ask":
            schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
            answer = await session.elicit_form("Who are you?", schema, related_request_id=ctx.request_id)
            return text(f"{answer.action} {json.dumps(answer.content)}")
        case "sample":
            messages = [t.SamplingMessage(role="user", content=t.TextContent(type="text", text="hi"))]
            answer = await session.create_message(messages, max_tokens=5, related_request_id=ctx.request_id)
            return text(answer.content.text)
        case "whisper":
            print(f"the secret is {os.environ.get('SECRET_TOKEN')}", file=sys.stderr, flush=True)
            raise MCPError(-32000, f"wrong token {os.environ.get('SECRET_TOKEN')}")
    return text("?")


async def list_resources(_: Any, __: Any) -> Any:
    listed = [{"uri": "test://static", "name": "static", "mimeType": "text/plain"}]
    return {"resources": listed, **FRESH}


async def list_resource_templates(_: Any, __: Any) -> Any:
    listed = [{"uriTemplate": "test://item/{id}", "name": "item"}]
    return {"resourceTemplates": listed, **FRESH}


async def read_resource(_: Any, params: Any) -> Any:
    if params.uri == "test://missing" or params.uri == "test://item/missing":
        raise MCPError(-32002, "Resource not found")
    contents = [
        {"uri": params.uri, "mimeType": "text/plain", "text": f"read {params.uri}", "_meta": {"n": 1}},
        {"uri": params.uri, "mimeType": "image/png", "blob": PIXEL},
    ]
    return {"contents": contents, **FRESH}


async def subscribe_resource(_: Any, params: Any) -> Any:
    note("subscribe", params.uri)
    return {"resultType": "complete"}


async def unsubscribe_resource(_: Any, params: Any) -> Any:
    note("unsubscribe", params.uri)
    return {"resultType": "complete"}


async def list_prompts(_: Any, __: Any) -> Any:
    arguments = [{"name": "topic", "required": True}]
    listed = [{"name": "greet", "description": "Greets.", "arguments": arguments}]
    return {"prompts": listed, **FRESH}


async def get_prompt(_: Any, params: Any) -> Any:
    content = {"type": "text", "text": f"Hello, {params.arguments['topic']}"}
    return {"messages": [{"role": "user", "content": content}], "resultType": "complete"}


async def completion(_: Any, params: Any) -> Any:
    values = [v for v in ("apple", "apricot", "banana") if v.startswith(params.argument.value)]
    return {"completion": {"values": values, "total": len(values)}, "resultType": "complete"}


async def main() -> None:
    """Serves until its input ends."""
    handlers: dict[str, Any] = {
        f"on_{each.__name__}": each
        for each in (
            *(list_tools, call_tool, list_resources, list_resource_templates, read_resource),
            *(subscribe_resource, unsubscribe_resource, list_prompts, get_prompt, completion),
        )
    }
    server: Any = Server("python-upstream", version="1.0", **handlers)
    note("started", os.getpid())
    options = server.create_initialization_options(NotificationOptions(True, True, True))
    async with stdio_server() as (read, write):
        await server.run(read, write, options)


asyncio.run(main())
