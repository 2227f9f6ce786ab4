"""Tests of connections run on the event loop of production as well: the loops differ in when data arrives."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
import uvloop

ON_BOTH_LOOPS = ("test_listener.py", "test_streamable.py")


def pytest_asyncio_loop_factories(item: pytest.Item) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    loops: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {"asyncio": asyncio.new_event_loop}
    if item.path.name in ON_BOTH_LOOPS:
        loops["uvloop"] = uvloop.new_event_loop
    return loops
