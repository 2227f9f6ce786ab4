"""Requests to a server that does not read."""

from __future__ import annotations

from typing import Any

import pytest
from mcp import MCPError

from mcp_tools_nvim.mounts.session import MAX_UNREAD, Dispatcher


class Full:
    """A way on which too much waits already."""

    unread = MAX_UNREAD + 1

    async def send(self, item: Any) -> None:
        """Nothing is to be added."""
        raise AssertionError(item)


async def test_what_is_not_read_does_not_grow() -> None:
    """A request more is refused, with why."""
    with pytest.raises(MCPError, match="does not read"):
        await Dispatcher((None, Full()), 1.0).send_raw_request("tools/call", {"name": "x"})
