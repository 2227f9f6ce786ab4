"""The process as Neovim starts it: ready line, ports, signals."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from time import monotonic
from typing import Any

import aiohttp
import pytest

from mcp_tools_nvim.process.lifecycle import _installed
from mcp_tools_nvim.process.ports import listen
from tests.support import processes
from tests.support.mounts import alive
from tests.support.nvim import ROOT, Home, Nvim, Spawn
from tests.support.served import eventually

WIRE = ROOT / "tests" / "support" / "wire.lua"
TOKEN = "the-token-of-the-test"
HEADERS = {
    "Authorization": f"Bearer {TOKEN}",
    "Accept": "application/json, text/event-stream",
    "Content-Type": "application/json",
    "MCP-Protocol-Version": "2026-07-28",
    "Mcp-Method": "tools/call",
}
CLEAN = ("NVIM", "NVIM_LISTEN_ADDRESS", "MCP_AUTH_TOKEN", "MCP_PORT")

Start = Callable[..., Awaitable["Bridge"]]


class Bridge:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def port(self) -> int:
        """The port of the ready line."""
        async with asyncio.timeout(10):
            line = (await self.process.stdout.readline()).decode()
        assert line.startswith("MCP server listening on port ")
        return int(line.split()[-1])

    async def log_line(self) -> bytes:
        async with asyncio.timeout(10):
            return await self.process.stderr.readline()

    async def signal_twice(self) -> None:
        self.process.terminate()
        await asyncio.sleep(0.1)
        if self.process.returncode is None:
            self.process.terminate()

    async def end(self, within: float) -> tuple[int, str]:
        """Exit code and stderr of a process that ends within this time."""
        begun = monotonic()
        async with asyncio.timeout(10):
            out, err = await self.process.communicate()
        assert monotonic() - begun <= within
        assert out == b""
        assert self.process.returncode is not None
        return self.process.returncode, err.decode()


@pytest.fixture
async def nvim(spawn_nvim: Spawn) -> Nvim:
    return await spawn_nvim(init_lua=f"dofile([[{WIRE}]])")


@pytest.fixture
async def start(home: Home) -> AsyncIterator[Start]:
    started: list[asyncio.subprocess.Process] = []

    async def spawn(address: Any, **variables: str | None) -> Bridge:
        env: dict[str, str | None] = {k: v for k, v in os.environ.items() if k not in CLEAN}
        env |= {"NVIM_LISTEN_ADDRESS": str(address), "MCP_AUTH_TOKEN": TOKEN}
        process = await processes.start(
            sys.executable,
            str(ROOT / "bridge" / "mcp_tools_nvim"),
            "process.main",
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=home.make("elsewhere"),
            env={k: v for k, v in (env | variables).items() if v is not None},
        )
        started.append(process)
        return Bridge(process)

    yield spawn
    for process in started:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def noted(nvim: Nvim, verb: str, count: int = 1) -> list[Any]:
    code = "local v, n = ...; return probe.wire.times(v) >= n"
    await nvim.wait_for(code, verb, count, timeout=20_000)  # the first call imports the SDK
    entries = await nvim.lua("return probe.wire.seen")
    return [entry[1:] for entry in entries if entry[0] == verb]


async def call(port: int, name: str, **arguments: Any) -> Any:
    """A stateless tools/call."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": name, "arguments": arguments, "_meta": meta}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    async with aiohttp.ClientSession(headers=HEADERS) as http:
        url = f"http://127.0.0.1:{port}/mcp"
        async with http.post(url, headers={"Mcp-Name": name}, json=body) as answer:
            return await answer.json()


async def test_a_bridge_prints_one_ready_line_and_serves_a_call(nvim: Nvim, start: Start) -> None:
    bridge = await start(nvim.socket)
    port = await bridge.port()
    [[info]] = await noted(nvim, "hello")
    assert (info["pid"], info["port"], info["port_holder"]) == (bridge.process.pid, port, "none")
    assert all(info["versions"].values())
    answer = await call(port, "echo", text="hi")
    assert answer["result"]["content"][0]["text"] == "hi"
    bridge.process.terminate()
    code, err = await bridge.end(6)
    assert code == 0
    assert TOKEN not in err
    assert all(line.split()[0] in ("DEBUG", "INFO", "WARN", "ERROR") for line in err.splitlines())


@pytest.mark.slow
async def test_a_second_signal_ends_the_process_at_once(nvim: Nvim, start: Start) -> None:
    bridge = await start(nvim.socket)
    port = await bridge.port()
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n")
    await writer.drain()
    await bridge.signal_twice()
    code, _ = await bridge.end(3)
    assert code == 0
    writer.close()


@pytest.mark.slow
async def test_a_second_signal_kills_mounted_servers(nvim: Nvim, start: Start, tmp_path: Path) -> None:
    """Even one that ignores the end of its input and TERM."""
    bridge = await start(nvim.socket)
    await bridge.port()
    script = f"trap '' TERM; echo $$ > {tmp_path}/pid; exec sleep 60"
    mount = {"name": "m", "command": ["sh", "-c", script], "start_timeout": 60_000, "limit": 1000}
    notify = "vim.rpcnotify(probe.wire.channel, 'mounts', ...)"
    await nvim.lua(notify, json.dumps([mount]))
    pid = int(await eventually(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(), 20))
    await bridge.signal_twice()
    await bridge.end(3)
    await eventually(lambda: not alive(pid))


async def test_a_port_that_is_in_use_is_an_error_without_the_fallback(nvim: Nvim, start: Start) -> None:
    held = listen("127.0.0.1", 0)
    bridge = await start(nvim.socket, MCP_PORT=str(held.getsockname()[1]))
    code, err = await bridge.end(10)
    assert code == 1
    assert "MCP_PORT" in err.splitlines()[-1]
    held.close()


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({"NVIM_LISTEN_ADDRESS": None}, "NVIM_LISTEN_ADDRESS"),
        ({"MCP_AUTH_TOKEN": None}, "MCP_AUTH_TOKEN"),
        pytest.param(
            {"NVIM_LISTEN_ADDRESS": "/nonexistent/n.sock"}, "NVIM_LISTEN_ADDRESS", marks=pytest.mark.slow
        ),
        pytest.param({"MCP_PORT": "many"}, "MCP_PORT", marks=pytest.mark.slow),
    ],
)
async def test_errors_name_the_variable(start: Start, variables: dict[str, str | None], named: str) -> None:
    """Exit code 1, no traceback."""
    code, err = await (await start("/nonexistent", **variables)).end(10)
    assert code == 1
    assert named in err.splitlines()[-1]
    assert "Traceback" not in err


async def test_a_refused_hello_prints_the_message_of_the_plugin(nvim: Nvim, start: Start) -> None:
    await nvim.lua("probe.wire.refuse = 'protocol 1, not 9: run :McpTools install'")
    code, err = await (await start(nvim.socket)).end(10)
    assert code == 1
    assert err.splitlines()[-1] == "ERROR protocol 1, not 9: run :McpTools install"


@pytest.mark.slow
async def test_a_prompt_delays_the_ready_line_and_the_log_names_the_key(nvim: Nvim, start: Start) -> None:
    await nvim.request("nvim_input", '"')
    bridge = await start(nvim.socket)
    assert b"press Esc" in await bridge.log_line()
    await nvim.request("nvim_input", "<Esc>")
    await bridge.port()
    bridge.process.terminate()
    assert (await bridge.end(6))[0] == 0


@pytest.mark.slow
async def test_a_signal_ends_a_bridge_that_waits_for_the_editor(nvim: Nvim, start: Start) -> None:
    await nvim.request("nvim_input", '"')
    bridge = await start(nvim.socket)
    await bridge.log_line()
    bridge.process.terminate()
    assert (await bridge.end(3))[0] == 0
    await nvim.request("nvim_input", "<Esc>")


async def test_before_the_first_client_memory_is_below_45_mb(nvim: Nvim, start: Start) -> None:
    bridge = await start(nvim.socket)
    await bridge.port()
    about = Path(f"/proc/{bridge.process.pid}")
    if not about.exists():
        pytest.skip("no /proc here")
    resident = next(line for line in (about / "status").read_text().splitlines() if line.startswith("VmRSS"))
    assert int(resident.split()[1]) <= 45 * 1024
    maps = (about / "maps").read_text()
    assert "pydantic_core" not in maps
    environ = (about / "environ").read_bytes()
    assert TOKEN.encode() in environ  # the kernel keeps the initial copy; children get os.environ
    bridge.process.terminate()
    await bridge.end(6)


def test_a_path_entry_that_cannot_be_read_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", ["x" * 5000, *sys.path])
    assert _installed("aiohttp") == aiohttp.__version__
