"""What real clients do that no specification asks of them: each was seen in one that people use.

Raw HTTP against the whole chain, for habits that the clients of the other files do not have.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.support.bridge import Bridge
from tests.support.raw import SESSION_VERSION, STATELESS_VERSION, Raw

pytestmark = pytest.mark.asyncio(loop_scope="session")

SOON = 5  # seconds; clients that probe give up after ten, or never
META = {
    "io.modelcontextprotocol/protocolVersion": STATELESS_VERSION,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "habits", "version": "1"},
}


@pytest_asyncio.fixture(loop_scope="session")
async def raw(bridge: Bridge) -> AsyncIterator[Raw]:
    """A client without a session."""
    async with Raw(bridge) as client:
        yield client


async def test_discover_comes_first(raw: Raw) -> None:
    """`server/discover` before anything else is answered at once, with what this server speaks."""
    async with asyncio.timeout(SOON):
        status, answer = await raw.send(
            raw.message("server/discover", {"_meta": META}),
            MCP_Protocol_Version=STATELESS_VERSION,
            Mcp_Method="server/discover",
        )
    assert (status, answer["result"]["supportedVersions"]) == (200, [STATELESS_VERSION])


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, -32600),
        ({"MCP-Protocol-Version": SESSION_VERSION}, -32600),
        ({"MCP-Protocol-Version": STATELESS_VERSION}, -32602),
        ({"MCP-Protocol-Version": STATELESS_VERSION, "Mcp-Method": "server/discover"}, -32602),
    ],
    ids=["no headers", "version with sessions", "version alone", "no envelope"],
)
async def test_odd_discovers_are_refused_at_once(raw: Raw, headers: dict[str, str], code: int) -> None:
    """A probe that is not well-formed gets an error after which clients fall back, not silence."""
    async with asyncio.timeout(SOON):
        status, answer = await raw.send(raw.message("server/discover", {}), **headers)
    assert (status, answer["error"]["code"]) == (400, code)


async def test_version_headers_come_and_go(raw: Raw) -> None:
    """`initialize` may carry a version in its header, and later requests may lack it."""
    params = {
        "protocolVersion": SESSION_VERSION,
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    }
    for version in (SESSION_VERSION, "2025-06-18", None):
        message = raw.message("initialize", params)
        status, answer = await raw.send(message, MCP_Protocol_Version=version)
        assert (status, answer["result"]["protocolVersion"]) == (200, SESSION_VERSION)
    await raw.initialize()
    for version in (SESSION_VERSION, None):
        status, answer = await raw.send(raw.message("tools/list"), MCP_Protocol_Version=version)
        assert status == 200, answer
        assert answer["result"]["tools"]
