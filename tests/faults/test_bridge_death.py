"""The bridge is killed or told to end while clients are connected: what they and the tools receive."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support import processes, results
from tests.support.bridge import ROOT_TOOLS, Bridge, connect, crash, wait_restarted
from tests.support.nvim import ROOT, Nvim, Spawn
from tests.support.raw import Raw, begun, code_of, initialize_params, text_of, within
from tests.support.shared import forgotten


async def continues(bridge: Bridge, raw: Raw, old: int) -> None:
    """The tool was cancelled with `bridge_gone`; the session continues with the next bridge."""
    await bridge.nvim.wait_for("return Seen.cancelled[1] == 'bridge_gone'", timeout=10_000)
    await wait_restarted(bridge, old)
    assert text_of(await raw.call("echo", {"value": "again"})) == "again"
    assert await bridge.nvim.lua("return #Seen.cancelled") == 1
    await forgotten(bridge)


async def test_a_call_in_flight_ends_when_the_bridge_is_killed(bridge: Bridge, raw: Raw) -> None:
    old = await bridge.pid()
    call = asyncio.create_task(raw.call("hold"))
    await begun(bridge)
    os.kill(old, signal.SIGKILL)
    with pytest.raises(aiohttp.ClientError):
        await within(10, call)
    await continues(bridge, raw, old)


@pytest.mark.slow
async def test_a_lost_channel_ends_the_call_on_both_sides(bridge: Bridge, raw: Raw) -> None:
    old = await bridge.pid()
    call = asyncio.create_task(raw.call("hold"))
    await begun(bridge)
    await bridge.nvim.lua(LOSE_CHANNEL, (await bridge.nvim.request("nvim_get_api_info"))[0])
    assert code_of(await within(10, call)) == "editor_gone"
    await continues(bridge, raw, old)


LOSE_CHANNEL = """
local mine = ...
for _, channel in ipairs(vim.api.nvim_list_chans()) do
  if channel.stream == 'socket' and channel.id ~= mine then
    vim.fn.chanclose(channel.id)
  end
end
"""


@pytest.mark.slow
async def test_an_sdk_client_does_not_notice_a_crash_between_calls(bridge: Bridge) -> None:
    async with connect(bridge, "sessions") as client:
        assert results.text_of(await client.call_tool("nvim_echo", {"value": "before"})) == "before"
        await crash(bridge)
        assert results.text_of(await client.call_tool("nvim_echo", {"value": "after"})) == "after"
        assert "nvim_echo" in {tool.name for tool in (await client.list_tools()).tools}


@pytest.mark.slow
async def test_after_a_crash_only_forged_and_deleted_ids_are_404(bridge: Bridge, raw: Raw) -> None:
    kept = raw.session
    assert kept
    deleted = await raw.initialize()
    assert (await raw.send(None, method="DELETE"))[0] == 200
    assert (await raw.send(raw.message("ping")))[0] == 404
    await crash(bridge)

    forged = {
        "changed": ("1" if kept[0] != "1" else "2") + kept[1:],
        "path": f"../{kept}",
        "plain": "0123456789abcdef",
        "bytes": "\xff\xfe.\xff",
        "long": kept + "A" * 4000,
    }

    async def ping(id_: str) -> int:
        return (await raw.send(raw.message("ping"), Mcp_Session_Id=id_))[0]

    async def delete(id_: str) -> int:
        return (await raw.send(None, method="DELETE", Mcp_Session_Id=id_))[0]

    for what, id_ in forged.items():
        assert (await ping(id_), await delete(id_)) == (404, 404), what
    assert (await ping(deleted), await ping(kept)) == (404, 200)
    await check_private_files(bridge)
    assert await delete(kept) == 200
    for _ in range(2):
        assert (await ping(kept), await delete(kept)) == (404, 404)


async def check_private_files(bridge: Bridge) -> None:
    """Other users cannot read the files about sessions."""
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
        line = await within(15, process.stdout.readline())
        assert line == f"MCP server listening on port {port}\n".encode()
        yield Bridge(nvim, port, token), process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
async def test_a_signal_answers_every_client_and_cancels_every_tool(
    spawn_nvim: Spawn, free_port: Callable[[], int], number: signal.Signals
) -> None:
    """Within 3 s, with exit code 0."""
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

        process.send_signal(number)
        assert await within(10, process.wait()) == 0
        for call in (plain, alone):
            assert code_of(await within(10, call)) == "cancelled"
        streamed = last_event(await within(10, answer.text()))
        assert (streamed["id"], code_of(streamed["result"])) == (counting["id"], "cancelled")
        assert code_of(last_event(await within(10, legacy.text()))["result"]) == "cancelled"
        assert "error" not in await within(10, silent.text())
        await bridge.nvim.wait_for("return #Seen.cancelled == 3")
        assert await bridge.nvim.lua("return Seen.cancelled") == ["shutdown"] * 3
    await forgotten(bridge)


async def open_sse(raw: Raw) -> aiohttp.ClientResponse:
    """A legacy stream on which a call of `hold` waits for its answer."""
    stream = await raw.http.get(f"{raw.bridge.url}/sse", headers=raw.headers(Mcp_Session_Id=None))
    assert await stream.content.readline() == b"event: endpoint\n"
    path = (await stream.content.readline()).decode().removeprefix("data: ").strip()
    for message in (
        raw.message("initialize", initialize_params("2024-11-05")),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        raw.call_message("hold"),
    ):
        assert (await raw.send(message, path=path, Mcp_Session_Id=None))[0] == 202
    return stream


def last_event(text: str) -> dict[str, Any]:
    data = [line[6:] for line in text.splitlines() if line.startswith("data: {")]
    return json.loads(data[-1])


@pytest.mark.slow
@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25"])
async def test_a_call_over_stdio_is_answered_after_a_crash(bridge: Bridge, version: str) -> None:
    """The next bridge does not know the call, whose client must not wait forever."""
    await bridge.nvim.lua(
        "mcp_tools.register({ name = 'reports', description = 'd', needs_approval = false,"
        " execute = function(ctx) ctx:progress(1) end })"
    )
    process = await processes.start(
        *(sys.executable, str(ROOT / "bridge" / "mcp_tools_nvim"), "stdio"),
        cwd=bridge.nvim.home.make("cwd"),
        env=bridge.nvim.home.environment(),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    call = {"name": "nvim_reports", "arguments": {}, "_meta": {"progressToken": "t"}}
    for message in (
        {"id": 0, "method": "initialize", "params": initialize_params(version)},
        {"method": "notifications/initialized"},
        {"id": 1, "method": "tools/call", "params": call},
    ):
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def message_with(**fields: Any) -> Any:
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
