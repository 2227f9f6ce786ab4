"""Remote editors: over TCP, and through forwarded sockets and ports, as `ssh` makes them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from mcp_tools_nvim.api import call_tool
from tests.support import processes
from tests.support.bridge import INIT, ROOT_TOOLS, Bridge, Start, connect, ready
from tests.support.forward import Forwarder, forwarded
from tests.support.nvim import ROOT, Home, Spawn
from tests.support.programs import editor
from tests.support.results import text_of

PROGRAM = [sys.executable, str(ROOT / "bridge" / "mcp_tools_nvim")]
TOKEN = "token-of-a-tunnel"


@pytest.fixture
def elsewhere(tmp_path: Path) -> dict[str, str]:
    """The environment of another machine: none of the editor's directories."""
    home = Home(tmp_path / "elsewhere")
    home.path.mkdir()
    return home.environment()


@contextlib.asynccontextmanager
async def tunnel(bridge: Bridge) -> AsyncIterator[Forwarder]:
    """The bridge's port at ::1, which represents another machine."""
    if not socket.has_ipv6 or not Path("/proc/net/if_inet6").exists():
        pytest.skip("no ::1 for the other end of a tunnel")
    async with forwarded(f"[::1]:{bridge.port}", f"127.0.0.1:{bridge.port}") as forwarder:
        yield forwarder


async def run(env: dict[str, str], *words: str) -> tuple[int, str, str]:
    process = await processes.start(
        *PROGRAM, *words, cwd="/", env=env, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(20):
        out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


async def test_python_over_tcp_and_forwarded_sockets(spawn_nvim: Spawn, tmp_path: Path) -> None:
    nvim = await editor(spawn_nvim)
    address = await nvim.lua("return vim.fn.serverstart('127.0.0.1:0')")
    here = str(tmp_path / "nvim.sock")
    async with forwarded(here, address), forwarded("127.0.0.1:0", str(nvim.socket)) as port:
        for each in (address, here, port.here):
            result = await asyncio.to_thread(call_tool, "echo", value="x", socket=each)
            assert result["text"] == "x", each
    gone = await asyncio.to_thread(call_tool, "echo", value="x", socket=here)
    assert gone["error"]["code"] == "editor_gone"


@pytest.mark.slow
async def test_an_editor_that_listens_on_tcp_only_is_found(spawn_nvim: Spawn) -> None:
    nvim = await spawn_nvim(init_lua=INIT.format(python=sys.executable, setup="{}", init=ROOT_TOOLS))
    await nvim.lua(
        "local tcp = vim.fn.serverstart('127.0.0.1:0') vim.fn.serverstop(vim.v.servername)"
        " mcp_tools.start({ nvim_socket = tcp })"
    )
    bridge = await ready(nvim)
    async with connect(bridge, "stateless") as client:
        assert text_of(await client.call_tool("nvim_echo", {"value": "x"})) == "x"
    env = nvim.home.environment()
    (one,) = json.loads((await run(env, "list", "--json"))[1])
    assert one["socket"].startswith("127.0.0.1:")
    code, out, _ = await run(env, "call", "nvim_echo", '{"value": "y"}', "--instance", one["socket"])
    assert (code, out) == (0, "y\n")


@pytest.mark.slow
async def test_serve_uses_a_forwarded_socket_and_ends_with_the_tunnel(
    spawn_nvim: Spawn, tmp_path: Path, elsewhere: dict[str, str]
) -> None:
    nvim = await editor(spawn_nvim)
    async with forwarded(str(tmp_path / "nvim.sock"), str(nvim.socket)) as socket_:
        process = await processes.start(
            *PROGRAM,
            *("serve", "--nvim", socket_.here),
            env=elsewhere | {"MCP_AUTH_TOKEN": TOKEN},
            stdout=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(15):
            line = (await process.stdout.readline()).decode()
        assert line.startswith("MCP server listening on port ")
        bridge = Bridge(nvim, int(line.split()[-1]), TOKEN)
        async with connect(bridge, "sessions") as client:
            assert text_of(await client.call_tool("nvim_echo", {"value": "x"})) == "x"
            assert text_of(await client.call_tool("nvim_later", {"value": "y"})) == "y"
    async with asyncio.timeout(10):
        assert await process.wait() == 0


@pytest.mark.slow
async def test_a_forwarded_port_works_and_a_foreign_host_is_refused(start_bridge: Start) -> None:
    bridge = await start_bridge(init=ROOT_TOOLS)
    async with forwarded("127.0.0.1:0", f"127.0.0.1:{bridge.port}") as port:
        beyond = Bridge(bridge.nvim, int(port.here.rpartition(":")[2]), bridge.token)
        assert beyond.port != bridge.port
        for transport in ("sessions", "stateless", "sse"):
            async with connect(beyond, transport) as client:
                assert text_of(await client.call_tool("nvim_echo", {"value": "x"})) == "x"
        reader, writer = await asyncio.open_connection("127.0.0.1", beyond.port)
        writer.write(
            b"POST /mcp HTTP/1.1\r\nHost: devbox:%d\r\nAuthorization: Bearer %s\r\nContent-Length: 0\r\n\r\n"
            % (beyond.port, bridge.token.encode())
        )
        assert b" 403 " in await reader.readline()
        writer.close()


@pytest.mark.slow
async def test_the_command_survives_a_cut_tunnel(start_bridge: Start, elsewhere: dict[str, str]) -> None:
    bridge = await start_bridge(init=ROOT_TOOLS)
    env = elsewhere | {"NVIM_MCP_TOKEN": bridge.token}
    async with tunnel(bridge) as forwarder:
        url = f"http://{forwarder.here}/mcp"
        code, out, err = await run(env, "call", "nvim_echo", '{"value": "x"}', "--url", url)
        assert (code, out) == (0, "x\n"), err
        code, out, _ = await run(env, "doctor", "--url", url)
        assert (code, f"the Neovim at {url}: plugin" in out) == (0, True)
        server = StdioServerParameters(
            command=PROGRAM[0], args=[*PROGRAM[1:], "stdio", "--url", url], env=env, cwd="/"
        )
        async with Client(stdio_client(server), mode="legacy") as client:
            assert text_of(await client.call_tool("nvim_echo", {"value": 1})) == "1"
            await forwarder.cut()
            await forwarder.serve()
            assert text_of(await client.call_tool("nvim_echo", {"value": 2})) == "2"
        entry = json.loads((await run(env, "config", "cursor", "--url", url, "--json"))[1])["text"]
        assert json.loads(entry)["mcpServers"]["nvim-tools"]["args"][-3:] == ["stdio", "--url", url]
        code, _, err = await run(env | {"NVIM_MCP_TOKEN": "another"}, "tools", "--url", url)
        assert (code, "tunnel" in err) == (3, True)


@pytest.mark.parametrize(
    ("url", "token", "message"),
    [
        ("http://127.0.0.1:7777/mcp", "", "$NVIM_MCP_TOKEN is not set"),
        ("http://devbox:7777/mcp", "t", "ssh -L 7777:127.0.0.1:7777 devbox"),
        ("http://127.0.0.1:x/mcp", "t", "not the URL of a bridge"),
        ("https://127.0.0.1:1/mcp", "t", "not the URL of a bridge"),
    ],
)
@pytest.mark.parametrize("command", ["stdio", "tools"])
async def test_an_invalid_or_remote_url_is_refused(
    elsewhere: dict[str, str], command: str, url: str, token: str, message: str
) -> None:
    code, _, err = await run(elsewhere | {"NVIM_MCP_TOKEN": token}, command, "--url", url)
    assert (code, message in err) == (2, True), err


@pytest.mark.slow
async def test_stdio_over_ssh_needs_only_a_root(start_bridge: Start) -> None:
    """In a bare shell in another directory, without port or token."""
    bridge = await start_bridge(init=ROOT_TOOLS)
    command = f"exec {' '.join(PROGRAM)} stdio --root {bridge.nvim.home.make('cwd')}"
    whole = bridge.nvim.home.environment()
    env = {name: whole[name] for name in ("HOME", "PATH", "XDG_RUNTIME_DIR")}
    server = StdioServerParameters(command="sh", args=["-c", command], env=env, cwd=os.sep)
    async with Client(stdio_client(server), mode="legacy") as client:
        assert text_of(await client.call_tool("nvim_echo", {"value": "x"})) == "x"
