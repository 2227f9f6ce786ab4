"""Options that change what a call may do, seen by a client."""

from __future__ import annotations

import pytest
import pytest_asyncio

from tests.support.bridge import Bridge, Transport, connect
from tests.support.results import error_of, text_of
from tests.support.shared import Keep

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def bridge(nvim_version: str, keep: Keep) -> Bridge:
    """A bridge with options of all kinds, and the tools of tests/e2e/tools.lua."""
    return await keep(nvim_version, setup="{ tool_prefix = '', limits = { tool_result = 2000 } }")


async def test_a_result_beyond_the_limit_is_refused(bridge: Bridge, transport: Transport) -> None:
    # `sized` is called without a prefix.
    async with connect(bridge, transport) as client:
        assert len(text_of(await client.call_tool("sized", {"bytes": 2000}))) == 2000
        assert error_of(await client.call_tool("sized", {"bytes": 2001}))["code"] == "too_large"
