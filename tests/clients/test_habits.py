"""Unusual requests that real clients were seen to send, as raw HTTP."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.support.bridge import Bridge
from tests.support.raw import SESSION_VERSION, STATELESS_META, STATELESS_VERSION, Raw

pytestmark = pytest.mark.asyncio(loop_scope="session")

SOON = 5  # seconds; clients that probe give up after ten, or never
META = STATELESS_META | {"io.modelcontextprotocol/clientInfo": {"name": "habits", "version": "1"}}


@pytest_asyncio.fixture(loop_scope="session")
async def raw(bridge: Bridge) -> AsyncIterator[Raw]:
    """A client without a session."""
    async with Raw(bridge) as client:
        yield client


VERSION = "MCP-Protocol-Version"


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        *(({}, -32600), ({VERSION: SESSION_VERSION}, -32600), ({VERSION: STATELESS_VERSION}, -32602)),
        ({VERSION: STATELESS_VERSION, "Mcp-Method": "server/discover"}, -32602),
    ],
    ids=["no headers", "version with sessions", "version alone", "no envelope"],
)
async def test_a_malformed_discover_is_refused_at_once(raw: Raw, headers: dict[str, str], code: int) -> None:
    """Clients fall back after an error, but wait after silence."""
    async with asyncio.timeout(SOON):
        status, answer = await raw.send(raw.message("server/discover", {}), **headers)
    assert (status, answer["error"]["code"]) == (400, code)


@pytest.mark.parametrize("era", ["sessions", "stateless"])
async def test_a_client_that_asks_for_skills_gets_one(raw: Raw, era: str) -> None:
    if era == "sessions":
        await raw.initialize()

    async def ask(method: str, **params: str) -> dict[str, Any]:
        headers: dict[str, str | None] = {}
        if era == "stateless":
            routed = params.get("uri", "")
            headers = {"MCP_Protocol_Version": STATELESS_VERSION, "Mcp_Method": method, "Mcp_Name": routed}
            headers["Mcp_Session_Id"] = None
        _, answer = await raw.send(raw.message(method, {**params, "_meta": META}), **headers)
        return dict(answer["result"])

    skill = (await ask("skills/list"))["skills"][0]
    assert (await ask("skills/get", uri=skill["uri"]))["skill"] == skill
    content = (await ask("resources/read", uri=skill["uri"]))["contents"][0]["text"]
    digest = f"sha256:{hashlib.sha256(content.encode()).hexdigest()}"
    assert skill["resources"] == [{"uri": skill["uri"], "digest": digest, "size": len(content.encode())}]
    assert skill["frontmatter"]["name"] in skill["uri"]
