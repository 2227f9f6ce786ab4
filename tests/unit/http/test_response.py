"""Answers, and when they become a stream."""

from __future__ import annotations

import gc
from typing import Any

import pytest
from aiohttp import ClientSession, web

from mcp_tools_nvim.http.response import PING_SECONDS, DeferredResponse, Responses
from mcp_tools_nvim.mcp.dispatch import Dispatch
from mcp_tools_nvim.sessions.session import Exchange
from tests.support.served import bare, served


async def test_an_answer_that_takes_long_becomes_a_stream_with_pings() -> None:
    streamed: list[bool] = []

    async def handle(request: Any) -> web.StreamResponse:
        response = DeferredResponse(request, Responses())
        for now in (100.0, 100.0 + PING_SECONDS - 0.1, 100.0 + PING_SECONDS):
            response.check(now)
            streamed.append(response.outbox is not None)
        try:
            return await response.finish(b"{}")
        finally:
            response.close()

    async with bare(handle) as url, ClientSession() as http, http.post(url) as answer:
        assert answer.content_type == "text/event-stream"
        assert await answer.text() == "event: message\ndata: {}\n\n"
    assert streamed == [False, False, True]


@pytest.mark.parametrize("stateless", [False, True])
async def test_a_finished_call_leaves_no_reference_cycle(stateless: bool) -> None:
    async with served() as bridge:
        bridge.editor.add_tool("say", lambda ctx, arguments: arguments["text"])
        session = await bridge.initialize()
        params = {"name": "nvim_say", "arguments": {"text": "x"}}
        gc.collect()
        gc.disable()
        try:
            for _ in range(3):
                if stateless:
                    await (await bridge.post_stateless("tools/call", params)).read()
                else:
                    await bridge.ask(session, "tools/call", params)
            await bridge.http.get(bridge.url + "/health")  # aiohttp's loop holds the last one until the next
            kinds = (DeferredResponse, Dispatch, Exchange)
            left = [each for each in gc.get_objects() if isinstance(each, kinds)]
        finally:
            gc.enable()
        assert left == []
