"""A client whose files tools read does not answer, loses its session, or the bridge is killed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from tests.support.bridge import ROOT_TOOLS, Bridge, Start, connect, crash, with_limits
from tests.support.host import DECLARED, EXTENSION, READ, File, Host, hosted
from tests.support.nvim import ROOT
from tests.support.raw import Raw, code_of, within
from tests.support.results import text_of
from tests.support.shared import forgotten

TOOLS = f"{ROOT_TOOLS} dofile([[{ROOT / 'tests' / 'e2e' / 'host_resources.lua'}]])"
URI = {"uri": "files://a"}


@pytest.fixture
def start(start_bridge: Start) -> Start:
    """Starts a bridge with tools that read the client's files; `setup` is a Lua table of options."""

    async def start(setup: str = "{}") -> Bridge:
        bridge = await start_bridge(setup)
        await bridge.nvim.lua(TOOLS)
        return bridge

    return start


async def declare(raw: Raw) -> None:
    await raw.initialize(capabilities={"extensions": {EXTENSION: DECLARED}})


@asynccontextmanager
async def asked(raw: Raw) -> AsyncIterator[tuple[aiohttp.ClientResponse, dict[str, Any]]]:
    """A call whose tool waits for a file: the stream of its answer, and the request to the client."""
    message = raw.call_message("host_read", URI)
    async with raw.http.post(f"{raw.bridge.url}/mcp", json=message, headers=raw.headers()) as response:
        question = await within(10, event(response))
        assert (question["method"], question["params"]) == (READ, URI)
        yield response, question


async def event(response: aiohttp.ClientResponse) -> dict[str, Any]:
    async for line in response.content:
        if line.startswith(b"data: {"):
            return json.loads(line[6:])
    raise AssertionError("the stream has ended")


async def abilities(raw: Raw) -> Any:
    """What the client's files allow, as tools see it."""
    return json.loads((await raw.call("host_look"))["content"][0]["text"])


@pytest.mark.slow
async def test_a_read_times_out_when_the_client_never_answers(start: Start) -> None:
    bridge = await start(with_limits(answer=1000))
    async with Raw(bridge) as raw:
        await declare(raw)
        async with asked(raw) as (stream, question):
            cancelled = await within(10, event(stream))
            assert cancelled["method"] == "notifications/cancelled"
            assert cancelled["params"] == {"requestId": question["id"]}
            result = (await within(10, event(stream)))["result"]
            assert code_of(result) == "timeout"
        late = {"jsonrpc": "2.0", "id": question["id"], "result": {"contents": []}}
        assert (await raw.send(late))[0] == 202
    await forgotten(bridge)


@pytest.mark.slow
async def test_a_revived_session_still_has_files(start: Start) -> None:
    bridge = await start("{ limits = { sessions = 1 } }")
    async with Raw(bridge) as raw, Raw(bridge) as other:
        await declare(raw)
        assert await abilities(raw) == [True, True, True]
        await other.initialize()
        assert await abilities(other) == [False, False, False]
        assert await abilities(raw) == [True, True, True]
        async with asked(raw) as (stream, question):
            contents = [{"uri": "files://a", "text": "still mine"}]
            answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"contents": contents}}
            assert (await raw.send(answer))[0] == 202
            result = (await within(10, event(stream)))["result"]
        assert json.loads(result["content"][0]["text"]) == {"contents": contents}
    await forgotten(bridge)


@pytest.mark.slow
async def test_an_official_client_continues_after_the_bridge_was_killed(start: Start) -> None:
    bridge = await start()
    waiting = asyncio.Event()

    async def never(method: str, params: dict[str, Any]) -> dict[str, Any]:
        waiting.set()
        await asyncio.Event().wait()
        return {}

    host = Host({"files://a": File("kept")})
    async with hosted(bridge, "sessions", host) as client:

        async def read() -> str:
            return text_of(await client.call_tool("nvim_host_size", URI))

        assert await read() == "4"
        await crash(bridge)
        assert await read() == "4"
        assert json.loads(text_of(await client.call_tool("nvim_host_list", {})))["resources"]

        host.answer = never
        broken = asyncio.create_task(client.call_tool("nvim_host_read", URI))
        await within(10, waiting.wait())
        await crash(bridge)
        await bridge.nvim.wait_for("return #Seen.cancelled == 1")
        assert await bridge.nvim.lua("return Seen.cancelled") == ["bridge_gone"]
        broken.cancel()
        await asyncio.gather(broken, return_exceptions=True)

        host.answer = None
        assert await read() == "4"
    async with connect(bridge, "sessions") as plain:
        assert text_of(await plain.call_tool("nvim_host_look", {})) == "[false,false,false]"
    await forgotten(bridge)
