"""How the bridge learns that a call has begun: by a note, or by an event where notes have no place."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from bridge.editor import start_note
from tests.support import processes
from tests.support.bridge import ROOT_TOOLS
from tests.support.nvim import ROOT, Nvim

INIT = f"_G.mcp_tools = require('mcp-tools') mcp_tools.setup() {ROOT_TOOLS}"


async def hello(nvim: Nvim, marker: str | None) -> tuple[int, dict[str, Any]]:
    """The channel, and the editor's answer."""
    channel = (await nvim.request("nvim_get_chan_info", 0))["id"]
    info = {"protocol": 1, "pid": 1, "port": 1, "wanted_port": 1, "port_holder": "none", "versions": {}}
    if marker is not None:
        info["marker"] = marker
    answer = await nvim.lua("return require('mcp-tools.wire').hello(...)", channel, info)
    return channel, answer


async def call(nvim: Nvim, channel: int) -> dict[str, Any]:
    """Run a tool that answers at once."""
    options = {"channel": channel, "call_id": "b-1", "timeout": 5000, "host": "mcp"}
    execute = "local name, args, opts = ... opts.start_by = vim.uv.hrtime() + 2e9"
    execute += " return require('mcp-tools.wire').execute(name, args, opts)"
    reply: dict[str, Any] = await nvim.lua(execute, "echo", {"value": "x"}, options)
    assert reply["result"]["text"] == "x"
    return reply


async def test_by_a_note(spawn_nvim: Callable[..., Awaitable[Nvim]]) -> None:
    """With a file the start is noted in it with its deadline, no event comes, and the file has no name."""
    nvim = await spawn_nvim(init_lua=INIT)
    marker = start_note.make()
    assert marker is not None
    channel, answer = await hello(nvim, marker.path)
    marker.hide()
    assert answer["marker"] is True
    assert marker.read() is None

    await call(nvim, channel)

    note = marker.read()
    assert note is not None
    assert (note[0], type(note[1])) == ("b-1", int)
    assert not Path(marker.path).exists()
    # Events come in order: what was sent before the reply is here by now.
    heard = [nvim.notifications.get_nowait()[0] for _ in range(nvim.notifications.qsize())]
    assert "started" not in heard


def test_where_no_file_can_be_had() -> None:
    """Then there is none, and nothing is said of it on stderr, which is the log."""
    code = "import resource; from bridge.editor import start_note\n"
    code += "resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3)); print(start_note.make())"
    done = processes.run([sys.executable, "-c", code], cwd=ROOT, timeout=20)
    assert (done.stdout, done.stderr) == ("None\n", "")


@pytest.mark.parametrize("path", [None, "/nowhere/at/all"])
async def test_by_an_event(spawn_nvim: Callable[..., Awaitable[Nvim]], path: str | None) -> None:
    """Without a file that the editor can open it sends `started` before the reply."""
    nvim = await spawn_nvim(init_lua=INIT)
    channel, answer = await hello(nvim, path)
    assert answer["marker"] is False

    await call(nvim, channel)

    heard = [nvim.notifications.get_nowait() for _ in range(nvim.notifications.qsize())]
    [args] = [args for name, args in heard if name == "started"]
    assert (args[0], type(args[1])) == ("b-1", int)
