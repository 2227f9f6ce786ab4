"""The wanted port is taken by another editor of the project, or by a foreign process."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import re
import sys
from collections.abc import AsyncIterator, Callable

import pytest

from tests.support.bridge import ROOT_TOOLS, Bridge, ready
from tests.support.bridge import start as start_bridge
from tests.support.nvim import Spawn, wanted_port
from tests.support.raw import Raw, text_of, within

TAKEN_OVER = 5_000  # ms


async def takes_over(bridge: Bridge, port: int) -> Bridge:
    """Waits until the editor uses `port`; its old port is still served."""
    await bridge.nvim.wait_for("return mcp_tools.get_port() == ...", port, timeout=TAKEN_OVER)
    now = await ready(bridge.nvim)
    assert now == Bridge(bridge.nvim, port, bridge.token)
    async with Raw(now) as new, Raw(bridge) as old:
        await new.initialize()
        await old.initialize()
        assert text_of(await new.call("echo", {"value": "new"})) == "new"
        assert text_of(await old.call("echo", {"value": "old"})) == "old"
    return now


@pytest.mark.slow
async def test_a_second_editor_takes_over_port_and_clients_of_the_first(spawn_nvim: Spawn) -> None:
    first = await start_bridge(spawn_nvim, init=ROOT_TOOLS)
    second = await start_bridge(spawn_nvim, init=ROOT_TOOLS)
    assert first.port == wanted_port(first.nvim.home.path.resolve() / "cwd")
    status = await second.nvim.lua("return mcp_tools.status()")
    assert second.port == first.port + 1
    assert second.token == first.token
    assert (status["wanted_port"], status["port_holder"]) == (first.port, "ours")
    assert "note" not in status
    async with Raw(first) as raw:
        await raw.initialize()
        await first.nvim.stop()
        await takes_over(second, first.port)
        assert text_of(await raw.call("echo", {"value": "moved"})) == "moved"


@contextlib.asynccontextmanager
async def foreign_server(port: int, answer: bytes) -> AsyncIterator[list[bytes]]:
    """A server of another process; yields what it receives."""
    received: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.append(await reader.read(65536))
        if answer:
            writer.write(answer)
        else:
            await reader.read()
        writer.close()

    async with asyncio.timeout(10):  # a bridge that had the port ends a moment after its editor
        while True:
            try:
                server = await asyncio.start_server(serve, "127.0.0.1", port)
                break
            except OSError as fault:
                if fault.errno != errno.EADDRINUSE:
                    raise
                await asyncio.sleep(0.005)
    try:
        yield received
    finally:
        server.close()


STORED_TOKEN = "return probe.identity.load(probe.project.root()).token"
IS_NEW = "mcp_tools.status().state == 'ready' and mcp_tools.endpoint().token ~= ..."
OTHER = b'HTTP/1.1 200 OK\r\nContent-Length: 29\r\n\r\n{"status":"ok","proof":"00"}\r\n'


INIT = (
    """
_G.Notified = {{}}
vim.notify = function(text) table.insert(Notified, text) end
_G.mcp_tools = require('mcp-tools')
mcp_tools.setup({{ bridge = {{ python = [[{python}]], port = {port} }} }})
"""
    + ROOT_TOOLS
)


@pytest.mark.slow
@pytest.mark.parametrize("answer", [OTHER, b""], ids=["answers", "silent"])
async def test_a_foreign_process_at_the_port_gets_no_token(
    spawn_nvim: Spawn, free_port: Callable[[], int], answer: bytes
) -> None:
    """The editor makes a new token, says why, and takes the port once it is free."""
    port = free_port()
    async with foreign_server(port, answer) as received:
        nvim = await spawn_nvim(init_lua=INIT.format(python=sys.executable, port=port))
        before = await nvim.lua(STORED_TOKEN)
        await nvim.lua("mcp_tools.start()")
        bridge = await ready(nvim)
        assert bridge.port != port
        assert bridge.token != before
        assert await nvim.lua(STORED_TOKEN) == bridge.token
        assert not any(secret.encode() in b"".join(received) for secret in (before, bridge.token))
        status = await nvim.lua("return mcp_tools.status()")
        assert (status["wanted_port"], status["port_holder"]) == (port, "foreign")
        assert f"another process uses port {port}" in status["note"]
        assert [said for said in await nvim.lua("return Notified") if "a new token" in said]
        await nvim.lua("vim.cmd('checkhealth mcp-tools')")
        assert status["note"] in "\n".join(await nvim.request("nvim_buf_get_lines", 0, 0, -1, False))
        await refuses(bridge, before)
    await takes_over(bridge, port)


@pytest.mark.slow
async def test_a_foreign_process_that_takes_a_freed_port_costs_the_token(spawn_nvim: Spawn) -> None:
    """Clients may send the old token there."""
    first = await start_bridge(spawn_nvim, init=ROOT_TOOLS)
    others = [await start_bridge(spawn_nvim, init=ROOT_TOOLS) for _ in range(2)]
    stopped = asyncio.ensure_future(first.nvim.stop())
    async with foreign_server(first.port, OTHER) as received:
        await stopped
        for other in others:
            await other.nvim.wait_for(f"return {IS_NEW}", first.token, timeout=25_000)
            now = await ready(other.nvim)
            assert now.token != first.token
            await refuses(now, first.token)
        assert len({(await ready(other.nvim)).token for other in others}) == 1
        assert first.token.encode() not in b"".join(received)


@pytest.mark.slow
async def test_a_foreign_port_costs_one_token(spawn_nvim: Spawn, free_port: Callable[[], int]) -> None:
    """The editor says how to choose another port. After it had the port, the next process costs a token."""
    port = free_port()

    async def next_editor() -> tuple[Bridge, str]:
        nvim = await spawn_nvim(init_lua=INIT.format(python=sys.executable, port=port))
        await nvim.lua("mcp_tools.start()")
        bridge = await ready(nvim)
        await nvim.lua("vim.cmd('checkhealth mcp-tools')")
        return bridge, "\n".join(await nvim.request("nvim_buf_get_lines", 0, 0, -1, False))

    async with foreign_server(port, OTHER):
        first, _ = await next_editor()
        advice = f"{port} .*Choose a free port: .*bridge = "
        for _ in range(2):
            await first.nvim.stop()
            again, health = await next_editor()
            assert again.token == first.token
            assert "new token" not in health
            assert re.search(advice, health, re.DOTALL)
            (message,) = [text for text in await again.nvim.lua("return Notified") if str(port) in text]
            assert "bridge.port" in message
            assert "token" not in message
            first = again
    await takes_over(first, port)
    await first.nvim.stop()
    async with foreign_server(port, OTHER):
        last, _ = await next_editor()
        assert last.token != first.token


async def refuses(bridge: Bridge, token: str) -> None:
    async with Raw(Bridge(bridge.nvim, bridge.port, token)) as raw:
        status, _ = await within(10, raw.send(raw.message("ping")))
    assert status == 401
