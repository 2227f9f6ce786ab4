"""Tools called from Python, when the editor or the program does not live to see the end."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from mcp_tools_nvim.api import AsyncClient, Client, call_tool, call_tool_async
from tests.support.nvim import Nvim
from tests.support.programs import editor, output_of, script

Spawn = Callable[..., Awaitable[Nvim]]


def code(result: dict[str, Any]) -> str:
    return str(result["error"]["code"])


async def test_the_editor_is_killed(spawn_nvim: Spawn) -> None:
    """A call whose editor dies ends at once, as does every later one; a new editor there is found."""
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
async def test_the_editor_is_stopped(spawn_nvim: Spawn) -> None:
    """An editor that does not run refuses calls of old and new connections, and runs none of them later."""
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
async def test_the_editor_asks_something(spawn_nvim: Spawn) -> None:
    """At a prompt the error says what to press there."""
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
async def test_the_program_is_killed(spawn_nvim: Spawn) -> None:
    """Its tools are cancelled, and the editor forgets its channel."""
    nvim = await editor(spawn_nvim)
    process = await script("call_tool('hold')", nvim, NVIM=str(nvim.socket))
    await nvim.wait_for("return Seen.running == 1", timeout=10_000)
    process.kill()
    await output_of(process)
    await nvim.wait_for("return Seen.cancelled[1] == 'disconnected'")
    await nvim.wait_for("return next(probe.wire_channels.attached) == nil")


async def test_no_plugin(spawn_nvim: Spawn) -> None:
    """An editor without the plugin is named, and what is missing."""
    nvim = await spawn_nvim(init_lua="vim.opt.runtimepath = vim.env.VIMRUNTIME")
    result = call_tool("echo", socket=str(nvim.socket))
    assert result["ok"] is False
    assert "runtimepath" in result["error"]["message"]


@pytest.mark.parametrize("address", ["/nowhere/at/all", "127.0.0.1:1", "127.0.0.1:99999", "x" * 500])
async def test_nobody_there(address: str) -> None:
    """An address where nobody listens is a value, too."""
    result = await call_tool_async("echo", socket=address)
    assert code(result) == "editor_gone"
    assert address in result["error"]["message"]


async def test_something_else_listens(unused_tcp_server: int) -> None:
    """What answers and is no Neovim is told from one."""
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


async def test_what_is_imported(spawn_nvim: Spawn) -> None:
    """Neither the import nor a call needs the packages for HTTP and MCP, and the import alone no asyncio."""
    nvim = await editor(spawn_nvim)
    heavy = "[m for m in ('asyncio', 'aiohttp', 'mcp', 'msgpack') if m in sys.modules]"
    code = f"before = {heavy}; ok = call_tool('echo')['ok']; print(before, ok, {heavy})"
    process = await script(code, nvim, NVIM=str(nvim.socket))
    assert await output_of(process) == "[] True ['asyncio', 'msgpack']"
