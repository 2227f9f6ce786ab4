"""Many editors and clients on one machine, and one client while everything is restarted."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.support import processes
from tests.support.bridge import Bridge, connect, ready
from tests.support.nvim import ROOT, Home, Nvim
from tests.support.results import text_of

pytestmark = [pytest.mark.slow, pytest.mark.nvim("0.11")]

EDITORS, CLIENTS, CALLS = 10, 2, 15
INIT = """
_G.mcp_tools = require('mcp-tools')
mcp_tools.setup({{ bridge = {{ python = [[{python}]] }} }})
mcp_tools.register({{ name = 'whose', description = 'd', needs_approval = false, execute = function(ctx)
  ctx(('%d'):format(vim.uv.os_getpid()))
end }})
mcp_tools.register({{ name = 'slow', description = 'd', needs_approval = false, run = function(ctx)
  ctx:await(function(done) vim.defer_fn(done, 3000) end)
  return 'at last'
end }})
"""
PROGRAM = [sys.executable, str(ROOT / "bridge" / "start.py"), "cli.main"]


async def stdio(nvim: Nvim, env: dict[str, str], folder: str) -> int:
    """Calls by a client that knows nothing but its folder; how many landed in `nvim`."""
    process = await processes.start(
        *PROGRAM, "stdio", cwd=folder, env=env, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdin
    assert process.stdout
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "m", "version": "1"}}
    right = 0
    for id_ in range(CALLS + 1):
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": id_, "method": "initialize", "params": hello}
        if id_:
            message |= {"method": "tools/call", "params": {"name": "nvim_whose"}}
        process.stdin.write(json.dumps(message).encode() + b"\n")
        while True:
            async with asyncio.timeout(30):
                answer = json.loads(await process.stdout.readline())
            if answer.get("id") == id_:
                break
        if id_:
            right += answer["result"]["content"][0]["text"] == str(nvim.process.pid)
        else:
            process.stdin.write(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
    process.stdin.close()
    assert await process.wait() == 0
    return right


async def test_ten_editors_and_twenty_clients(spawn_nvim: Callable[..., Awaitable[Nvim]], home: Home) -> None:
    """A client a project over HTTP, one over stdio that finds the editor by its folder; one tool is slow."""
    editors = await asyncio.gather(
        *(
            spawn_nvim(init_lua=INIT.format(python=sys.executable), cwd=home.make(f"project-{number}"))
            for number in range(EDITORS)
        )
    )
    await asyncio.gather(*(nvim.lua("mcp_tools.start()") for nvim in editors))
    bridges: list[Bridge] = list(await asyncio.gather(*(ready(nvim) for nvim in editors)))
    assert len({bridge.port for bridge in bridges}) == EDITORS
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("NVIM", "MCP_"))}
    env = kept | editors[0].home.environment()
    env.pop("NVIM", None)

    async def http(bridge: Bridge) -> int:
        pid, right = str(bridge.nvim.process.pid), 0
        async with connect(bridge, "sessions") as client:
            for _ in range(CALLS):
                right += text_of(await client.call_tool("nvim_whose")) == pid
        return right

    async with connect(bridges[0], "sessions") as client:
        begun = time.monotonic()
        slow = asyncio.create_task(client.call_tool("nvim_slow"))
        found = await asyncio.gather(
            *(http(bridge) for bridge in bridges),
            *(stdio(nvim, env, str(home.make(f"project-{number}"))) for number, nvim in enumerate(editors)),
        )
        assert found == [CALLS] * (EDITORS * CLIENTS)
        assert text_of(await slow) == "at last"
        assert time.monotonic() - begun >= 3


async def test_stdio_while_everything_is_restarted(spawn_nvim: Callable[..., Awaitable[Nvim]]) -> None:
    """Editor and bridge are restarted in turn under calls: each is answered once, and no process is left."""
    text = INIT.format(python=sys.executable)
    nvim = await spawn_nvim(init_lua=text)
    await nvim.lua("mcp_tools.start()")
    await ready(nvim)
    folder = nvim.home.make("cwd")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("NVIM", "MCP_"))}
    process = await processes.start(
        *PROGRAM,
        "stdio",
        cwd=folder,
        env=kept | nvim.home.environment(),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin
    assert process.stdout
    answers: dict[int, list[dict[str, Any]]] = {}

    async def read() -> None:
        assert process.stdout
        while line := await process.stdout.readline():
            message = json.loads(line)
            if "id" in message and "method" not in message:
                answers.setdefault(message["id"], []).append(message)

    def send(**message: Any) -> None:
        assert process.stdin
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def answered(id_: int) -> dict[str, Any]:
        async with asyncio.timeout(30):
            while id_ not in answers:
                await asyncio.sleep(0.01)
        return answers[id_][0]

    reading = asyncio.create_task(read())
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "m", "version": "1"}}
    send(id=0, method="initialize", params=hello)
    await answered(0)
    send(method="notifications/initialized")
    sent, stopped = 0, False

    async def call_on() -> None:
        nonlocal sent
        while not stopped:
            sent += 1
            send(id=sent, method="tools/call", params={"name": "nvim_whose"})
            await answered(sent)
            await asyncio.sleep(0.02)

    calling = asyncio.create_task(call_on())
    for turn in range(2):
        await asyncio.sleep(0.5)
        if turn % 2 == 0:
            await nvim.request("nvim_command", "McpTools restart")
            await nvim.wait_for("return require('mcp-tools').status().state ~= 'ready'")
        else:
            await nvim.stop()
            nvim = await spawn_nvim(init_lua=text)
            await nvim.lua("mcp_tools.start()")
        await ready(nvim)
    await asyncio.sleep(0.5)
    stopped = True
    await calling
    send(id=sent + 1, method="tools/call", params={"name": "nvim_whose"})
    last = await answered(sent + 1)
    assert last["result"]["content"][0]["text"] == str(nvim.process.pid)
    assert all(len(each) == 1 for each in answers.values())
    assert set(answers) == set(range(sent + 2))
    failed = [each[0]["error"]["message"] for each in answers.values() if "error" in each[0]]
    assert all("editor" in text or "Neovim" in text or "bridge" in text for text in failed), failed
    assert sum("result" in each[0] for each in answers.values()) > 10
    process.stdin.close()
    async with asyncio.timeout(5):
        assert await process.wait() == 0
    await reading
