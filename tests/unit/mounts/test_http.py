"""Requests to a server that is mounted by its URL."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

from mcp_tools_nvim.mounts.http import UNUSED_ANSWER_TIMEOUT, _set_timeout

NAMED = {"arguments": {"method": "notifications/custom"}}


@pytest.mark.parametrize(
    ("method", "message", "bounded"),
    [
        ("POST", {"method": "notifications/cancelled", "params": {"requestId": 1}}, True),
        ("POST", {"id": 1, "method": "tools/call", "params": {"name": "x"}}, False),
        ("POST", {"id": 1, "method": "tools/call", "params": NAMED}, False),
        ("POST", {"id": 1, "result": NAMED}, False),
        ("DELETE", None, True),
    ],
)
async def test_only_an_answer_that_nobody_waits_for_has_a_read_timeout(
    method: str, message: Any, bounded: bool
) -> None:
    """A call may take long, whatever its arguments are called."""
    content = b"" if message is None else json.dumps({"jsonrpc": "2.0", **message}).encode()
    request = httpx2.Request(method, "http://localhost/mcp", content=content)
    await _set_timeout(request)
    assert request.extensions.get("timeout") == ({"read": UNUSED_ANSWER_TIMEOUT} if bounded else None)
