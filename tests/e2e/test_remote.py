"""Editors that are elsewhere: over TCP, by forwarded sockets and ports, as `ssh` makes them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from mcp_tools_nvim.api import call_tool
from tests.support import processes
from tests.support.bridge import INIT, ROOT_TOOLS, Bridge, connect, ready
from tests.support.forward import Forwarder, forwarded
from tests.support.nvim import ROOT, Home, Nvim
from tests.support.programs import editor
from tests.support.results import text_of

Start = Callable[..., Awaitable[Bridge]]
Spawn = Callable[..., Awaitable[Nvim]]

PROGRAM = [sys.executable, str(ROOT / "bridge" / "mcp_tools_nvim")]
TOKEN = "token-of-a-tunnel"


@pytest.fixture
def elsewhere(tmp_path: Path) -> dict[str, str]:
    """The environment of another machine: nothing of the editor's folders."""
    home = Home(tmp_path / "elsewhere")
    home.path.mkdir()
    return home.environment()


@contextlib.asynccontextmanager
async def tunnel(bridge: Bridge) -> AsyncIterator[Forwarder]:
    """The bridge's port on what stands for another machine: the other loopback address."""
    if not socket.has_ipv6 or not Path("/proc/net/if_inet6").exists():
        pytest.skip("no ::1 here, which stands for the other end of a tunnel")
    async with forwarded(f"[::1]:{bridge.port}", f"127.0.0.1:{bridge.port}") as forwarder:
        yield forwarder


async def run(env: dict[str, str], *words: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of `mcp-tools`."""
    process = await processes.start(
        *PROGRAM, *words, cwd="/", env=env, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(20):
        out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


async def test_an_editor_over_tcp_and_by_a_forwarded_socket(spawn_nvim: Spawn, tmp_path: Path) -> None:
    """A Python program calls tools by `host:port`, and by a socket or a port that leads there."""
    nvim = await editor(spawn_nvim)
    address = await nvim.lua("return vim.fn.serverstart('127.0.0.1:0')")
    here = str(tmp_path / "nvim.sock")
    async with forwarded(here, address), forwarded("127.0.0.1:0", str(nvim.socket)) as port:
        for each in (address, here, port.here):
            result = await asyncio.to_thread(call_tool, "echo", value="x", socket=each)
            assert result["text"] == "x", each
    gone = await asyncio.to_thread(call_tool, "echo", value="x", socket=here)
    assert gone["error"]["code"] == "editor_gone"


async def test_an_editor_that_listens_on_tcp_alone(spawn_nvim: Spawn) -> None:
    """`nvim --listen 127.0.0.1:PORT`: its own bridge reaches it, and `mcp-tools` knows it by that name."""
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
async def test_a_bridge_beside_the_client(
    spawn_nvim: Spawn, tmp_path: Path, elsewhere: dict[str, str]
) -> None:
    """`mcp-tools serve` with a forwarded socket; it ends when the tunnel does."""
    nvim = await editor(spawn_nvim)
    async with forwarded(str(tmp_path / "nvim.sock"), str(nvim.socket)) as socket_:
        process = await processes.start(
            *PROGRAM,
            *("serve", "--nvim", socket_.here),
            env=elsewhere | {"MCP_AUTH_TOKEN": TOKEN},
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
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
async def test_a_client_beyond_a_forwarded_port(start_bridge: Start) -> None:
    """Any loopback port will do for a client over HTTP; a name of another machine is refused."""
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
async def test_the_command_beyond_a_forwarded_port(start_bridge: Start, elsewhere: dict[str, str]) -> None:
    """`--url`: calls, doctor, and a server on stdio that outlives a tunnel which is cut and comes back."""
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
    ("url", "token", "said"),
    [
        ("http://127.0.0.1:7777/mcp", "", "$NVIM_MCP_TOKEN is not set"),
        ("http://devbox:7777/mcp", "t", "ssh -L 7777:127.0.0.1:7777 devbox"),
        ("http://127.0.0.1:x/mcp", "t", "not the URL of a bridge"),
        ("https://127.0.0.1:1/mcp", "t", "not the URL of a bridge"),
    ],
)
@pytest.mark.parametrize("command", ["stdio", "tools"])
async def test_urls_that_are_none(
    elsewhere: dict[str, str], command: str, url: str, token: str, said: str
) -> None:
    """What is wrong with it is said at once, and no token goes to another machine in the clear."""
    code, _, err = await run(elsewhere | {"NVIM_MCP_TOKEN": token}, command, "--url", url)
    assert (code, said in err) == (2, True), err


@pytest.mark.slow
async def test_the_command_beside_the_editor(start_bridge: Start) -> None:
    """`ssh HOST mcp-tools stdio --root DIR`: a bare shell in another folder, without port or token."""
    bridge = await start_bridge(init=ROOT_TOOLS)
    folder = bridge.nvim.home.make("cwd")
    kept = ("HOME", "PATH", "XDG_RUNTIME_DIR")
    env = {name: value for name, value in bridge.nvim.home.environment().items() if name in kept}
    server = StdioServerParameters(
        command="sh", args=["-c", f"exec {' '.join(PROGRAM)} stdio --root {folder}"], env=env, cwd=os.sep
    )
    async with Client(stdio_client(server), mode="legacy") as client:
        result: Any = await client.call_tool("nvim_echo", {"value": "x"})
        assert text_of(result) == "x"
