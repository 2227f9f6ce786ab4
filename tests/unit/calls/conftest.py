"""Calls run on virtual time: a test of a minute takes a millisecond."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tests.support.virtual_time import VirtualLoop


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"virtual": VirtualLoop}
