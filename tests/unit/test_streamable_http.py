"""The session era over streamable HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from bridge.editor.memory import FailError, ToolContext
from bridge.model import Limits, Settings
from tests.support.served import Served, eventually, events, next_event, served


@pytest.fixture
async def bridge() -> AsyncIterator[Served]:
    async with served() as running:
        running.editor.add_tool("echo", lambda ctx, arguments: arguments.get("text", "nothing"))
        yield running


async def test_initialize_opens_a_session(bridge: Served) -> None:
    """The answer names server, capabilities and a session id; the tools are those of the editor."""
    params = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "c", "version": "1"},
    }
    async with await bridge.post(bridge.message("initialize", params)) as response:
        result = (await response.json())["result"]
        session = response.headers["Mcp-Session-Id"]
    assert result["serverInfo"]["name"] == "mcp-tools.nvim"
    assert result["capabilities"] == {"tools": {"listChanged": True}, "logging": {}}
    assert result["protocolVersion"] == "2025-06-18"
    listed = await bridge.ask(session, "tools/list")
    assert [tool["name"] for tool in listed["result"]["tools"]] == ["nvim_echo"]
    assert (await bridge.call(session, "echo", {"text": "hi"}))["content"] == [{"type": "text", "text": "hi"}]
    assert (await bridge.call(session, "echo"))["content"] == [{"type": "text", "text": "nothing"}]
