"""A scripted model on loopback with the APIs of the vendors."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import deque
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Json = dict[str, Any]


@dataclass(frozen=True)
class Step:
    """The next answer of the model: a text, or a call of `tool` with `arguments`."""

    text: str = ""
    tool: str | None = None
    arguments: Json = field(default_factory=dict)


class Model:
    def __init__(self) -> None:
        self.requests: list[str] = []
        self.port = 0
        self._steps: deque[Step] = deque()
        self._calls = 0
        self._asked = asyncio.Event()

    @property
    def url(self) -> str:
        """The base URL."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def done(self) -> bool:
        """Whether every step was requested."""
        return not self._steps

    def plan(self, *steps: Step) -> None:
        """Sets the next answers and clears the requests."""
        self._steps = deque(steps)
        self.requests.clear()

    def call(self, tool: str, **arguments: Any) -> Step:
        """A step that calls a tool."""
        return Step(tool=tool, arguments=arguments)

    async def received(self, text: str, timeout: int = 30_000) -> None:
        """Waits until a request contains a text; `timeout` in ms."""
        try:
            async with asyncio.timeout(timeout / 1000):
                while not any(text in request for request in self.requests):
                    self._asked.clear()
                    await self._asked.wait()
        except TimeoutError:
            raise AssertionError(f"the model did not receive {text!r} within {timeout} ms") from None

    def _next(self, body: str, tools: set[str]) -> Step:
        """The step for a request. Requests without tools are for titles, summaries and the like."""
        if not tools or not self._steps:
            return Step(text="ok")
        self.requests.append(body)
        self._asked.set()
        tool = self._steps[0].tool
        if tool is not None and tool not in tools:
            return Step(text=f"there is no tool {tool}: {sorted(tools)}")
        return self._steps.popleft()

    def _id(self) -> str:
        self._calls += 1
        return f"call_{self._calls}"

    async def anthropic(self, request: web.Request) -> web.StreamResponse:
        """`POST /v1/messages`."""
        body = await request.json()
        step = self._next(json.dumps(body), {str(tool.get("name")) for tool in body.get("tools") or ()})
        reason = "tool_use" if step.tool else "end_turn"
        block: Json = {"type": "text", "text": step.text}
        if step.tool:
            block = {"type": "tool_use", "id": f"toolu_{self._id()}", "name": step.tool}
            block["input"] = step.arguments
        message: Json = {"id": f"msg_{self._id()}", "type": "message", "role": "assistant"}
        message |= {"model": body["model"], "content": [block]}
        message |= {"stop_reason": reason, "stop_sequence": None}
        message["usage"] = {"input_tokens": 1, "output_tokens": 1}
        if not body.get("stream"):
            return web.json_response(message)
        empty: Json = {**block, "text": ""} if not step.tool else {**block, "input": {}}
        delta: Json = {"type": "text_delta", "text": step.text}
        if step.tool:
            delta = {"type": "input_json_delta", "partial_json": json.dumps(step.arguments)}
        events: list[Json] = [
            {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}},
            {"type": "content_block_start", "index": 0, "content_block": empty},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {
                "type": "message_delta",
                "delta": {"stop_reason": reason, "stop_sequence": None},
                "usage": {"output_tokens": 1},
            },
            {"type": "message_stop"},
        ]
        return await stream_events(request, events)

    async def google(self, request: web.Request) -> web.StreamResponse:
        """`POST /v1beta/models/NAME:METHOD`."""
        method = request.path.rpartition(":")[2]
        body = await request.json()
        if method == "countTokens":
            return web.json_response({"totalTokens": 1})
        declared = [one for tool in body.get("tools") or () for one in tool.get("functionDeclarations", ())]
        step = self._next(json.dumps(body), {str(one["name"]) for one in declared})
        part: Json = {"text": step.text}
        if step.tool:
            part = {"functionCall": {"name": step.tool, "args": step.arguments}}
        answer = {
            "candidates": [
                {"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}
            ],
            "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
        }
        if method != "streamGenerateContent":
            return web.json_response(answer)
        return await stream(request, [f"data: {json.dumps(answer)}\n\n"])

    async def openai(self, request: web.Request) -> web.StreamResponse:
        """`POST /v1/chat/completions`."""
        body = await request.json()
        step = self._next(json.dumps(body), {one["function"]["name"] for one in body.get("tools") or ()})
        message: Json = {"role": "assistant", "content": step.text or None}
        if step.tool:
            function = {"name": step.tool, "arguments": json.dumps(step.arguments)}
            message["tool_calls"] = [{"index": 0, "id": self._id(), "type": "function", "function": function}]
        reason = "tool_calls" if step.tool else "stop"
        base = {"id": "chat", "created": 1, "model": body.get("model", "mock")}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        if not body.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": reason}
            base["object"] = "chat.completion"
            return web.json_response(base | {"choices": [choice], "usage": usage})
        base["object"] = "chat.completion.chunk"
        chunks: list[Json] = [
            base | {"choices": [{"index": 0, "delta": message, "finish_reason": None}]},
            base | {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
            base | {"choices": [], "usage": usage},
        ]
        lines = [*(json.dumps(chunk) for chunk in chunks), "[DONE]"]
        return await stream(request, (f"data: {line}\n\n" for line in lines))

    async def responses(self, request: web.Request) -> web.StreamResponse:
        """`POST /v1/responses`, always streamed. Tools of an MCP server are in a namespace."""
        body = await request.json()
        spaces = {"": body.get("tools") or ()}
        spaces |= {tool["name"]: tool["tools"] for tool in spaces[""] if tool["type"] == "namespace"}
        known = {str(one.get("name")): space for space, tools in spaces.items() for one in tools}
        step = self._next(json.dumps(body), set(known))
        item: Json = {"type": "message", "role": "assistant", "id": self._id()}
        item["content"] = [{"type": "output_text", "text": step.text}]
        if step.tool:
            item = {"type": "function_call", "call_id": self._id(), "name": step.tool}
            item |= {"arguments": json.dumps(step.arguments)}
            if known[step.tool]:
                item["namespace"] = known[step.tool]
            if "input" in step.arguments:  # a tool without a schema
                item |= {"type": "custom_tool_call", "input": step.arguments["input"]}
        response: Json = {"id": self._id()}
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        events: list[Json] = [
            {"type": "response.created", "response": response},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": {**response, "usage": usage}},
        ]
        return await stream_events(request, events)


async def stream(request: web.Request, parts: Iterator[str] | list[str]) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})
    await response.prepare(request)
    for part in parts:
        await response.write(part.encode())
    await response.write_eof()
    return response


async def stream_events(request: web.Request, events: list[Json]) -> web.StreamResponse:
    return await stream(request, [f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events])


async def tokens(_: web.Request) -> web.Response:
    """`POST /v1/messages/count_tokens`."""
    return web.json_response({"input_tokens": 1})


@contextlib.asynccontextmanager
async def serving() -> AsyncIterator[Model]:
    """Runs a model."""
    model = Model()
    app = web.Application(client_max_size=1 << 26)
    app.router.add_post("/v1/messages", model.anthropic)
    app.router.add_post("/v1/messages/count_tokens", tokens)
    app.router.add_post("/v1/chat/completions", model.openai)
    app.router.add_post("/v1/responses", model.responses)
    app.router.add_post("/v1beta/models/{name:.*}", model.google)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    model.port = runner.addresses[0][1]
    try:
        yield model
    finally:
        await runner.cleanup()
