"""Tools called from Python while the editor or the program ends, stops or is not reachable."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any

import pytest

from mcp_tools_nvim.api import AsyncClient, Client, call_tool, call_tool_async
from tests.support.nvim import Spawn
from tests.support.programs import editor, output_of, script


def code(result: dict[str, Any]) -> str:
    return str(result["error"]["code"])


async def test_calls_fail_when_the_editor_is_killed_and_work_with_a_new_one(spawn_nvim: Spawn) -> None:
    nvim = await editor(spawn_nvim)
    async with AsyncClient(str(nvim.socket)) as client:
        call = asyncio.create_task(client.call_tool("hold"))
        await nvim.wait_for("return Seen.running == 1")
        await nvim.kill()
        assert code(await call) == "editor_gone"
        result = await client.call_tool("echo")
        assert code(result) == "editor_gone"
        assert str(nvim.socket) in result["error"]["message"]
        nvim.socket.unlink()
        again = await editor(spawn_nvim, args=["--cmd", f"call serverstart('{nvim.socket}')"])
        assert (await client.call_tool("echo", value="back"))["text"] == "back"
        await again.stop()


@pytest.mark.slow
async def test_a_stopped_editor_refuses_calls_and_never_runs_them(spawn_nvim: Spawn) -> None:
    nvim = await editor(spawn_nvim)
    with Client(str(nvim.socket)) as client:
        assert client.call_tool("echo")["ok"]
        os.kill(nvim.process.pid, signal.SIGSTOP)
        try:
            old = asyncio.to_thread(client.call_tool, "mark")
            results = await asyncio.gather(old, call_tool_async("mark", socket=str(nvim.socket)))
        finally:
            os.kill(nvim.process.pid, signal.SIGCONT)
        assert [code(result) for result in results] == ["editor_blocked"] * 2
        assert client.call_tool("echo")["ok"]
        assert await nvim.lua("return Seen.late") == 0


@pytest.mark.slow
async def test_the_error_names_the_key_that_a_prompt_waits_for(spawn_nvim: Spawn) -> None:
    nvim = await editor(spawn_nvim)
    await nvim.attach_ui()
    await nvim.request("nvim_input", "i<C-r>")
    while not (await nvim.request("nvim_get_mode"))["blocking"]:
        await asyncio.sleep(0.01)
    result = await asyncio.to_thread(call_tool, "echo", socket=str(nvim.socket))
    await nvim.request("nvim_input", "<Esc><Esc>")
    assert code(result) == "editor_blocked"
    assert "Esc" in result["error"]["message"]


@pytest.mark.slow
async def test_a_killed_programs_tools_are_cancelled(spawn_nvim: Spawn) -> None:
    nvim = await editor(spawn_nvim)
    process = await script("call_tool('hold')", nvim, NVIM=str(nvim.socket))
    await nvim.wait_for("return Seen.running == 1", timeout=10_000)
    process.kill()
    await output_of(process)
    await nvim.wait_for("return Seen.cancelled[1] == 'disconnected'")
    await nvim.wait_for("return next(probe.wire_channels.attached) == nil")


async def test_an_editor_without_the_plugin_is_reported(spawn_nvim: Spawn) -> None:
    nvim = await spawn_nvim(init_lua="vim.opt.runtimepath = vim.env.VIMRUNTIME")
    result = call_tool("echo", socket=str(nvim.socket))
    assert result["ok"] is False
    assert "runtimepath" in result["error"]["message"]


@pytest.mark.parametrize("address", ["/nowhere/at/all", "127.0.0.1:1", "127.0.0.1:99999", "x" * 500])
async def test_an_unreachable_address_is_an_error_value(address: str) -> None:
    result = await call_tool_async("echo", socket=address)
    assert code(result) == "editor_gone"
    assert address in result["error"]["message"]


async def test_a_server_that_is_not_neovim_is_an_error_value(unused_tcp_server: int) -> None:
    result = await call_tool_async("echo", socket=f"127.0.0.1:{unused_tcp_server}")
    assert code(result) == "editor_gone"


@pytest.fixture
async def unused_tcp_server() -> Any:
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()


async def test_the_api_imports_only_what_it_needs(spawn_nvim: Spawn) -> None:
    nvim = await editor(spawn_nvim)
    heavy = "[m for m in ('asyncio', 'aiohttp', 'mcp', 'msgpack') if m in sys.modules]"
    code = f"before = {heavy}; ok = call_tool('echo')['ok']; print(before, ok, {heavy})"
    process = await script(code, nvim, NVIM=str(nvim.socket))
    assert await output_of(process) == "[] True ['asyncio', 'msgpack']"
