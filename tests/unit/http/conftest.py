"""A bridge with one tool. Tests of connections run on the event loop of production as well."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
import uvloop

from tests.support.served import Served, served

ON_BOTH_LOOPS = ("test_listener.py", "test_streamable.py")
"""The loops differ in when data arrives."""


def pytest_asyncio_loop_factories(item: pytest.Item) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    loops: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {"asyncio": asyncio.new_event_loop}
    if item.path.name in ON_BOTH_LOOPS:
        loops["uvloop"] = uvloop.new_event_loop
    return loops


@pytest.fixture
async def bridge() -> AsyncIterator[Served]:
    async with served() as running:
        running.editor.add_tool("echo", lambda ctx, arguments: arguments.get("text", "nothing"))
        yield running
