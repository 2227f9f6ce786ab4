"""The bridge dies or is told to end while clients are connected: who hears of it, and what goes on."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support import processes
from tests.support.bridge import ROOT_TOOLS, Bridge, connect, ready
from tests.support.nvim import ROOT, Nvim
from tests.support.raw import Raw, begun, code_of, text_of, within
from tests.support.shared import forgotten


async def kill(bridge: Bridge) -> None:
    """Ends the bridge as a crash would, and waits until the next one is ready."""
    old = await bridge.pid()
    os.kill(old, signal.SIGKILL)
    await back(bridge, old)


async def back(bridge: Bridge, old: int) -> None:
    """Waits for the process after `old`; port and token must be the same."""
    await bridge.nvim.wait_for(
        "return mcp_tools.status().pid ~= ... and mcp_tools.endpoint() ~= nil", old, timeout=15_000
    )
    again = await ready(bridge.nvim)
    assert (again.port, again.token) == (bridge.port, bridge.token)


async def test_killed_mid_call(bridge: Bridge, raw: Raw) -> None:
    """The tool hears `bridge_gone` in time; client and session go on with the bridge that follows."""
    old = await bridge.pid()
    call = asyncio.create_task(raw.call("hold"))
    await begun(bridge)
    os.kill(old, signal.SIGKILL)

    with pytest.raises(aiohttp.ClientError):
        await within(1, call)
    await bridge.nvim.wait_for("return Seen.cancelled[1] == 'bridge_gone'", timeout=1_500)
    await back(bridge, old)
    assert text_of(await raw.call("echo", {"value": "here again"})) == "here again"
    assert await bridge.nvim.lua("return #Seen.cancelled") == 1
    await forgotten(bridge)


@pytest.mark.slow
async def test_channel_is_lost(bridge: Bridge, raw: Raw) -> None:
    """Bridge and editor live but no longer hear each other: the call ends on both sides, all goes on anew."""
    old = await bridge.pid()
    call = asyncio.create_task(raw.call("hold"))
    await begun(bridge)
    await bridge.nvim.lua(LOSE_CHANNEL, (await bridge.nvim.request("nvim_get_api_info"))[0])

    assert code_of(await within(3, call)) == "editor_gone"
    await bridge.nvim.wait_for("return Seen.cancelled[1] == 'bridge_gone'", timeout=1_500)
    await back(bridge, old)
    assert text_of(await raw.call("echo", {"value": "here again"})) == "here again"
    await forgotten(bridge)


LOSE_CHANNEL = """
local mine = ...
for _, channel in ipairs(vim.api.nvim_list_chans()) do
  if channel.stream == 'socket' and channel.id ~= mine then
    vim.fn.chanclose(channel.id)
  end
end
"""


@pytest.mark.slow
async def test_killed_between_calls(bridge: Bridge) -> None:
    """A client of the official SDK with an open stream notices nothing."""
    async with connect(bridge, "sessions") as client:
        assert text(await client.call_tool("nvim_echo", {"value": "before"})) == "before"
        await kill(bridge)

        assert text(await client.call_tool("nvim_echo", {"value": "after"})) == "after"
        assert "nvim_echo" in {tool.name for tool in (await client.list_tools()).tools}


def text(result: Any) -> str:
    """The text of a result of the SDK."""
    return "".join(block.text for block in result.content)


@pytest.mark.slow
async def test_session_ids_after_a_restart(bridge: Bridge, raw: Raw) -> None:
    """Old ids go on, forged ones are 404, deleted ones stay 404."""
    kept = raw.session
    assert kept
    deleted = await raw.initialize()
    assert (await raw.send(None, method="DELETE"))[0] == 200
    assert (await raw.send(raw.message("ping")))[0] == 404
    await kill(bridge)

    forged = {
        "changed": ("1" if kept[0] != "1" else "2") + kept[1:],
        "path": f"../{kept}",
        "plain": "0123456789abcdef",
        "bytes": "\xff\xfe.\xff",
        "long": kept + "A" * 4000,
    }
    for what, id_ in forged.items():
        assert (await raw.send(raw.message("ping"), Mcp_Session_Id=id_))[0] == 404, what
        assert (await raw.send(None, method="DELETE", Mcp_Session_Id=id_))[0] == 404, what
    assert (await raw.send(raw.message("ping"), Mcp_Session_Id=deleted))[0] == 404
    assert (await raw.send(raw.message("ping"), Mcp_Session_Id=kept))[0] == 200
    await written_for_us_only(bridge)
    assert (await raw.send(None, method="DELETE", Mcp_Session_Id=kept))[0] == 200
    for _ in range(2):
        assert (await raw.send(raw.message("ping"), Mcp_Session_Id=kept))[0] == 404
        assert (await raw.send(None, method="DELETE", Mcp_Session_Id=kept))[0] == 404


async def written_for_us_only(bridge: Bridge) -> None:
    """What is written about sessions is for nobody else to read."""
    state = Path(await bridge.nvim.lua("return vim.fn.stdpath('state') .. '/mcp-tools'"))
    files = [path for path in state.rglob("*") if path.is_file()]
    assert "sessions" in {path.parent.name for path in files}
    assert [path for path in files if path.stat().st_mode & 0o077] == []


@asynccontextmanager
async def own_process(nvim: Nvim, port: int) -> AsyncIterator[tuple[Bridge, asyncio.subprocess.Process]]:
    """A bridge as a child of the test, whose exit code can be seen."""
    token = "0123456789abcdef" * 4
    variables = {"NVIM_LISTEN_ADDRESS": str(nvim.socket), "MCP_PORT": str(port), "MCP_AUTH_TOKEN": token}
    process = await processes.start(
        sys.executable,
        *(str(ROOT / "bridge" / "mcp_tools_nvim"), "process.main"),
        env=nvim.home.environment() | variables,
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        assert process.stdout
        line = await within(15, process.stdout.readline())
        assert line == f"MCP server listening on port {port}\n".encode()
        yield Bridge(nvim, port, token), process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
async def test_told_to_end_with_open_streams(
    spawn_nvim: Callable[..., Awaitable[Nvim]], free_port: Callable[[], int], number: signal.Signals
) -> None:
    """Within 3 s every client has its answer, every tool was told, streams end, and the exit code is 0."""
    init = f"_G.mcp_tools = require('mcp-tools') mcp_tools.setup() {ROOT_TOOLS}"
    nvim = await spawn_nvim(init_lua=init)
    async with own_process(nvim, free_port()) as (bridge, process), Raw(bridge) as raw:
        await raw.initialize()
        plain = asyncio.create_task(raw.call("hold"))
        alone = asyncio.create_task(raw.stateless("hold"))
        counting = raw.call_message("count", {"steps": 1000}, progressToken="p")
        answer = await raw.http.post(f"{bridge.url}/mcp", json=counting, headers=raw.headers())
        assert answer.content_type == "text/event-stream"
        silent = await raw.http.get(f"{bridge.url}/mcp", headers=raw.headers())
        legacy = await open_sse(raw)
        await begun(bridge, 3)

        begin = time.monotonic()
        process.send_signal(number)
        assert await within(3, process.wait()) == 0
        assert time.monotonic() - begin < 3
        for call in (plain, alone):
            assert code_of(await within(1, call)) == "cancelled"
        streamed = last_event(await within(1, answer.text()))
        assert (streamed["id"], code_of(streamed["result"])) == (counting["id"], "cancelled")
        assert code_of(last_event(await within(1, legacy.text()))["result"]) == "cancelled"
        assert "error" not in await within(1, silent.text())
        await bridge.nvim.wait_for("return #Seen.cancelled == 3")
        assert await bridge.nvim.lua("return Seen.cancelled") == ["shutdown"] * 3
    await forgotten(bridge)


async def open_sse(raw: Raw) -> aiohttp.ClientResponse:
    """A legacy stream on which a call of `hold` waits for its answer."""
    stream = await raw.http.get(f"{raw.bridge.url}/sse", headers=raw.headers(Mcp_Session_Id=None))
    assert await stream.content.readline() == b"event: endpoint\n"
    path = (await stream.content.readline()).decode().removeprefix("data: ").strip()
    params = {
        "protocolVersion": "2024-11-05",
        "capabilities": {},
        "clientInfo": {"name": "sse", "version": "1"},
    }
    for message in (
        raw.message("initialize", params),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        raw.call_message("hold"),
    ):
        assert (await raw.send(message, path=path, Mcp_Session_Id=None))[0] == 202
    return stream


def last_event(text: str) -> dict[str, Any]:
    """The JSON of the last event of a stream."""
    event: dict[str, Any] = json.loads(
        [line for line in text.splitlines() if line.startswith("data: {")][-1][6:]
    )
    return event


@pytest.mark.slow
@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25"])
async def test_a_call_over_stdio_is_answered_when_the_bridge_is_killed_during_progress(
    bridge: Bridge, version: str
) -> None:
    """The bridge that follows knows nothing of the call, whose client must not wait for ever."""
    await bridge.nvim.lua(
        "mcp_tools.register({ name = 'reports', description = 'd', needs_approval = false,"
        " execute = function(ctx) ctx:progress(1) end })"
    )
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("NVIM", "MCP_"))}
    process = await processes.start(
        *(sys.executable, str(ROOT / "bridge" / "mcp_tools_nvim"), "stdio"),
        cwd=bridge.nvim.home.make("cwd"),
        env=kept | bridge.nvim.home.environment(),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    client = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    call = {"name": "nvim_reports", "arguments": {}, "_meta": {"progressToken": "t"}}
    for message in (
        {"id": 0, "method": "initialize", "params": client},
        {"method": "notifications/initialized"},
        {"id": 1, "method": "tools/call", "params": call},
    ):
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def message_with(**fields: Any) -> Any:
        assert process.stdout is not None
        async with asyncio.timeout(20):
            while True:
                message = json.loads(await process.stdout.readline())
                if message.items() >= fields.items():
                    return message

    await message_with(method="notifications/progress")
    os.kill(await bridge.pid(), signal.SIGKILL)
    answer = await message_with(id=1)
    assert "carried out" in answer["error"]["message"]
    process.stdin.close()
    async with asyncio.timeout(10):
        assert await process.wait() == 0
