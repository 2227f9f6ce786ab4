"""Symbols of a file in prompts, with a real language server, and when it fails."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.nvim import Nvim, Spawn
from tests.support.results import eventually

pytestmark = [pytest.mark.every_nvim, pytest.mark.slow]

SERVER = Path(sys.executable).with_name("jedi-language-server")
TEXT = '''LIMIT = 3


class Shelf:
    """Holds
    things."""

    def put(self, thing):
        self.thing = thing
        return self


def fill(shelf):
    return shelf.put(LIMIT)
'''
START = """
local server, path = ...
vim.cmd.edit(path)
_G.client = vim.lsp.start({ name = 'jedi', cmd = { server }, root_dir = vim.fs.dirname(path) })
function _G.ask()
  _G.found, _G.answers = nil, 0
  local symbol, bufnr = probe.symbol, vim.api.nvim_get_current_buf()
  probe.background.run(function(ctx)
    return (symbol.await(ctx, bufnr, { within = symbol.INTERACTIVE_MS }))
  end, function(file)
    local list = {}
    probe.symbol_nodes.each(file.tree, function(node)
      table.insert(list, { name = node.name, line = node.line, end_line = node.end_line, by = file.by })
    end)
    _G.found, _G.answers = list, answers + 1
  end)
end
function _G.prompt(name, args)
  _G.result, _G.fault = nil, nil
  probe.executor():execute(name, args, {
    kind = 'prompt',
    host = 'test',
    listener = { done = function(_, call)
      _G.result, _G.fault = call.outcome.payload and call.outcome.payload.text, call.outcome.error
    end },
  })
end
"""


@pytest.fixture
async def nvim(spawn_nvim: Spawn) -> AsyncIterator[Nvim]:
    """A Neovim with a Python file and the language server that is ready for it."""
    running = await spawn_nvim(init_lua="require('mcp-tools').setup({ bridge = { autostart = false } })")
    path = running.home.path / "cwd" / "shelf.py"
    path.write_text(TEXT)
    await running.lua(START, str(SERVER), str(path))
    await running.wait_for(
        "local client = vim.lsp.get_client_by_id(client); return client and client.initialized",
        timeout=20_000,
    )
    yield running
    family = [one for pid in servers(running) for one in processes_below(pid)]
    await running.lua("local client = vim.lsp.get_client_by_id(client); if client then client.stop(true) end")
    await gone(family)


def children_of(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def processes_below(pid: int) -> list[int]:
    """A process and all its descendants."""
    return [pid, *(one for child in children_of(pid) for one in processes_below(child))]


def servers(nvim: Nvim) -> list[int]:
    children = children_of(nvim.process.pid)
    return [child for child in children if SERVER.name in Path(f"/proc/{child}/cmdline").read_text()]


async def gone(pids: list[int]) -> None:
    """Waits until all have ended; children of a server end a moment later."""
    await eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), 10)


async def symbols(nvim: Nvim) -> list[tuple[str, int, Any]]:
    """Names with their first and last lines."""
    await nvim.lua("ask()")
    await nvim.wait_for("return found ~= nil", timeout=20_000)
    return [(one["name"], one["line"], one.get("end_line")) for one in await nvim.lua("return found")]


async def test_symbols_come_from_the_server_also_of_unsaved_text(nvim: Nvim) -> None:
    found = await symbols(nvim)
    assert [name for name, _, _ in found if name != "thing"] == ["LIMIT", "Shelf", "put", "fill"]
    assert ("Shelf", 4, 10) in found
    assert ("fill", 13, 14) in found
    await nvim.lua("vim.api.nvim_buf_set_lines(0, 0, 0, false, { 'FIRST = 1', '' })")
    found = await symbols(nvim)
    assert found[0] == ("FIRST", 1, 1)
    assert ("fill", 15, 16) in found


async def test_prompts_use_the_servers_symbols(nvim: Nvim) -> None:
    await nvim.lua("prompt('analyze_module', { path = 'shelf.py' })")
    text = await nvim.wait_for("return result", timeout=20_000)
    assert "- LIMIT (line 1)" in text
    await nvim.lua("prompt('write_tests', { path = 'shelf.py', symbol = 'put' })")
    text = await nvim.wait_for("return result", timeout=20_000)
    assert "(line 8)" in text
    excerpt = text.partition("```")[2].partition("```")[0]
    assert "return self" in excerpt
    assert "def fill" not in excerpt


async def test_a_late_answer_of_the_server_changes_nothing(nvim: Nvim) -> None:
    (pid,) = servers(nvim)
    os.kill(pid, signal.SIGSTOP)
    try:
        found = await symbols(nvim)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert found == []
    assert ("LIMIT", 1, 1) in await symbols(nvim)
    assert await nvim.lua("return found[1].by") == "server"
    assert await nvim.lua("return answers") == 1


async def test_a_killed_server_ends_the_question_without_symbols(nvim: Nvim) -> None:
    (pid,) = servers(nvim)
    os.kill(pid, signal.SIGSTOP)
    await nvim.lua("ask()")
    family = processes_below(pid)
    os.kill(pid, signal.SIGKILL)
    await nvim.wait_for("return found ~= nil", timeout=20_000)
    assert not await nvim.lua("return found")
    await nvim.wait_for("return vim.lsp.get_client_by_id(client) == nil")
    assert await symbols(nvim) == []
    assert await nvim.lua("return answers") == 1
    await gone(family)
