"""An MCP server on the official Python SDK with revision 2026-07-28 only: no handshake, no session.

python modern_server.py JOURNAL [http]
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from typing import Any

import anyio
import mcp_types as t
from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.message import SessionMessage
from mcp.shared.subscriptions import ToolsListChanged

NO_ARGUMENTS: dict[str, Any] = {"type": "object", "properties": {}}
TEXT: dict[str, Any] = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
TOOLS = dict.fromkeys(("count", "hold", "grow", "ask", "refuse"), NO_ARGUMENTS) | {"echo": TEXT}
FRESH: dict[str, Any] = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
REFUSAL = {"code": -32022, "message": "no handshake here", "data": {"supported": ["2026-07-28"]}}

bus = InMemorySubscriptionBus()


def note(*what: Any) -> None:
    with open(sys.argv[1], "a") as journal:
        journal.write(json.dumps(what) + "\n")


def text(value: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": value}], "resultType": "complete"}


async def list_tools(_: Any, __: Any) -> Any:
    return {"tools": [{"name": name, "inputSchema": schema} for name, schema in TOOLS.items()], **FRESH}


async def call_tool(ctx: Any, params: Any) -> Any:
    note("call", params.name)
    match params.name:
        case "echo":
            return text(params.arguments["text"])
        case "refuse":
            raise MCPError(-32000, "not today")
        case "count":
            for step in range(1, 4):
                await ctx.session.report_progress(step, 3, f"step {step}")
            return text("counted")
        case "hold":
            try:
                await asyncio.sleep(600)
            except asyncio.CancelledError:
                note("cancelled")
                raise
        case "grow":
            TOOLS["grown"] = NO_ARGUMENTS
            await bus.publish(ToolsListChanged())
            return text("grown")
        case "ask":
            if not params.input_responses:
                schema = {"type": "object", "properties": {"name": {"type": "string"}}}
                question = {"mode": "form", "message": "Who are you?", "requestedSchema": schema}
                return {
                    "resultType": "input_required",
                    "inputRequests": {"who": {"method": "elicitation/create", "params": question}},
                    "requestState": "asked",
                }
            answer = params.input_responses["who"]
            return text(f"{params.request_state} {answer.action} {json.dumps(answer.content)}")
    return text("?")


async def list_resources(_: Any, __: Any) -> Any:
    return {"resources": [{"uri": "test://static", "name": "static"}], **FRESH}


async def read_resource(_: Any, params: Any) -> Any:
    return {"contents": [{"uri": params.uri, "text": f"read {params.uri}"}], **FRESH}


async def list_prompts(_: Any, __: Any) -> Any:
    return {"prompts": [{"name": "greet"}], **FRESH}


async def get_prompt(_: Any, __: Any) -> Any:
    content = {"type": "text", "text": "Hello"}
    return {"messages": [{"role": "user", "content": content}], "resultType": "complete"}


def is_handshake(message: Any) -> bool:
    """Whether a message is `initialize`, which this server refuses."""
    return getattr(message, "method", None) == "initialize"


class Reader:
    """Reads the messages of a client and refuses the handshake."""

    def __init__(self, read: Any, write: Any) -> None:
        self._read, self._write = read, write

    async def receive(self) -> Any:
        while True:
            item = await self._read.receive()
            if isinstance(item, Exception) or not is_handshake(item.message):
                return item
            error = t.JSONRPCError(jsonrpc="2.0", id=item.message.id, error=t.ErrorData(**REFUSAL))
            await self._write.send(SessionMessage(error))

    def __aiter__(self) -> Reader:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        await self._read.aclose()

    async def __aenter__(self) -> Reader:
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.aclose()


async def over_http(server: Any) -> None:
    """Serves at a free port, which is printed."""
    import uvicorn

    app = server.streamable_http_app(stateless_http=True)

    async def refuse_handshake(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await app(scope, receive, send)
            return
        event = await receive()
        message = json.loads(event["body"])
        if message.get("method") == "initialize":
            body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": REFUSAL}).encode()
            head = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
            await send({"type": "http.response.start", "status": 400, "headers": head})
            await send({"type": "http.response.body", "body": body})
            return
        first = [event]

        async def again() -> Any:
            return first.pop() if first else await receive()

        await app(scope, again, send)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        await uvicorn.Server(uvicorn.Config(refuse_handshake, log_level="warning")).serve(sockets=[listener])


async def main() -> None:
    """Serves until its input ends."""
    functions = (list_tools, call_tool, list_resources, read_resource, list_prompts, get_prompt)
    handlers: dict[str, Any] = {f"on_{each.__name__}": each for each in functions}
    handlers["on_subscriptions_listen"] = ListenHandler(bus)
    server: Any = Server("modern-upstream", version="1.0", **handlers)
    if "http" in sys.argv:
        await over_http(server)
        return
    async with stdio_server() as (read, write):
        await server.run(Reader(read, write), write, server.create_initialization_options())


asyncio.run(main())
