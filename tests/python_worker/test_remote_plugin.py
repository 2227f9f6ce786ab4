"""The remote plugin with Neovim's manifest and pynvim clients."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import pytest

from tests.support import processes
from tests.support.bridge import Start
from tests.support.nvim import ROOT, Spawn
from tests.support.python_worker import INIT, SAMPLES, Caller, caller

OUTSIDE = """
local path = ...
local remote = probe.remote
local target = remote.target({
  send = function(_, ...)
    vim.fn.McpToolsHost(...)
  end,
})
require('mcp-tools').register({
  name = 'by_manifest',
  description = 'Runs a tool in the worker of the manifest.',
  annotations = { read_only = true },
  execute = function(ctx)
    remote.call(target, ctx, { key = path, name = 'py_add', source = { path = path } }, { a = 40 })
  end,
})
"""


async def run(*command: str) -> str:
    """The output of a program."""
    pipe = asyncio.subprocess.PIPE
    process = await processes.start(*command, stdout=pipe, stderr=pipe)
    async with asyncio.timeout(30):
        output, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return output.decode()


@pytest.mark.slow
async def test_any_pynvim_client_can_call_python_tools(start: Start) -> None:
    bridge = await start()
    client = str(ROOT / "tests" / "support" / "pynvim_client.py")

    async def outcome(name: str, args: dict[str, Any]) -> Any:
        return json.loads(await run(sys.executable, client, str(bridge.nvim.socket), name, json.dumps(args)))

    assert await outcome("py_add", {"a": 1}) == {"result": {"sum": 3, "words": []}}
    assert (await outcome("py_asks_first", {}))["err"]["code"] == "access_denied"


@pytest.mark.slow
async def test_a_manifest_with_our_file_changes_nothing(start: Start, spawn_nvim: Spawn) -> None:
    """The file also works in the worker of the manifest."""
    provider = f"vim.g.python3_host_prog = [[{sys.executable}]]"
    first = await spawn_nvim(init_lua=provider)
    output = await first.lua("return vim.fn.execute('UpdateRemotePlugins')")
    assert "remote/host: python3 host registered plugins ['nvim_mcp_host.py']" in output

    bridge = await start(init=provider)
    assert await bridge.nvim.lua("return vim.fn.exists('#FuncUndefined#McpToolsHost')") == 1
    await bridge.nvim.lua(OUTSIDE, str(SAMPLES / "mcp_tools" / "samples.py"))
    async with caller(bridge, "lua") as tools:
        assert (await tools.call("py_add", a=1)).value["sum"] == 3
        assert (await tools.call("by_manifest")).value == {"sum": 42, "words": []}
    assert await bridge.nvim.lua("return vim.fn.execute('messages')") == ""


@pytest.mark.slow
async def test_a_manifest_without_a_provider_is_ignored(start: Start, spawn_nvim: Spawn) -> None:
    first = await spawn_nvim(init_lua=f"vim.g.python3_host_prog = [[{sys.executable}]]")
    await first.lua("vim.fn.execute('UpdateRemotePlugins')")

    bridge = await start(init="vim.g.python3_host_prog = '/nonsense/python'")
    async with caller(bridge, "lua") as tools:
        assert (await tools.call("py_add", a=1)).value["sum"] == 3
    assert await bridge.nvim.lua("return vim.fn.execute('messages')") == ""


async def test_starting_the_editor_loads_nothing_for_python_tools(spawn_nvim: Spawn) -> None:
    setup = "require('mcp-tools').setup({ bridge = { autostart = false } })"
    nvim = await spawn_nvim(init_lua=f"{INIT}\n{setup}")
    loaded = await nvim.lua(
        "return vim.tbl_filter(function(name) return name:find('^mcp%-tools%.python') ~= nil end,"
        " vim.tbl_keys(package.loaded))"
    )

    assert not loaded
    assert (await Caller(nvim, None).call("nowhere")).error is not None
