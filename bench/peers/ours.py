"""Ours: a Neovim with a configured language server, its bridge, and a client over HTTP."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import AsyncIterator
from pathlib import Path

import servers

from peers import sample
from peers.mcp_client import Asker, language_server, over_http
from tests.support import nvim

INIT = """
vim.cmd('filetype on')
vim.api.nvim_create_autocmd('FileType', {
  pattern = 'python',
  callback = function(args)
    local cmd = vim.json.decode([==[COMMAND]==])
    vim.lsp.start({ name = 'basedpyright', cmd = cmd, root_dir = vim.fn.getcwd() }, { bufnr = args.buf })
  end,
})
require('mcp-tools').setup({
  bridge = { autostart = false },
  tools = 'all',
  approval = { rule = function() return 'allow' end },
})
"""
UNSAVED = """
local found = vim.empty_dict()
for _, bufnr in ipairs(vim.api.nvim_list_bufs()) do
  if vim.bo[bufnr].modified then
    local path = vim.fs.basename(vim.api.nvim_buf_get_name(bufnr))
    found['shop/' .. path] = table.concat(vim.api.nvim_buf_get_lines(bufnr, 0, -1, false), '\\n') .. '\\n'
  end
end
return found
"""
USE = re.compile(r"^\s+(\d+)\b")


class Ours:
    """Answers of this project's tools."""

    name = "ours"

    def __init__(self, asker: Asker, editor: nvim.Nvim) -> None:
        self._ask = asker.ask
        self._editor = editor

    async def overview(self) -> str:
        """The text of the ledger's file."""
        return await self._ask("nvim_symbol_overview", path=sample.LEDGER)

    async def find(self) -> str:
        """The method with its text."""
        return await self._ask("nvim_symbol_find", symbol=f"Ledger/{sample.NAME}", body=True)

    async def references(self) -> str:
        """The uses of the method."""
        method = {"symbol": f"Ledger/{sample.NAME}", "path": sample.LEDGER}
        return await self._ask("nvim_symbol_references", **method)

    async def rename(self, old: str, new: str) -> str:
        """Renames the method in every file."""
        where = {"path": sample.LEDGER, "line": sample.definition().line, "symbol": old}
        return await self._ask("nvim_symbol_rename", **where, new_name=new)

    async def diagnostics(self) -> str:
        """The diagnostics of the file that was changed on disk."""
        return await self._ask("nvim_diagnostics_list", path=sample.EDITED)

    async def hover(self) -> str:
        """The hover text at a use of the method."""
        place = {"line": sample.use().line, "column": sample.use_column()}
        return await self._ask("nvim_symbol_info", path=sample.EDITED, **place)

    def places(self, text: str) -> set[sample.Place]:
        """The locations in an answer."""
        found, path = set(), ""
        for line in text.splitlines():
            use = USE.match(line)
            if use:
                found.add(sample.Place(path, int(use[1])))
            else:
                path = line.strip()
        return found

    def present(self, text: str) -> str:
        """The new diagnostics in an answer, which also lists resolved ones."""
        return "\n".join(line for line in text.splitlines() if not line.startswith("fixed: "))

    async def unsaved(self) -> dict[str, str]:
        """Texts of unsaved buffers."""
        return await self._editor.lua(UNSAVED)


@contextlib.asynccontextmanager
async def running(program: Path, folder: Path, place: Path) -> AsyncIterator[Ours]:
    """A separate editor for a project, with `place` as its home."""
    home = nvim.Home(place / "editor")
    home.path.mkdir()
    init = INIT.replace("COMMAND", json.dumps(language_server()))
    async with contextlib.AsyncExitStack() as stack:
        editor = await stack.enter_async_context(nvim.running(program, home, init_lua=init, cwd=folder))
        bridge = await stack.enter_async_context(servers.bridge(editor.socket, home, "ours"))
        asker = await stack.enter_async_context(over_http(f"{bridge.url}/mcp", bridge.headers))
        begun = time.perf_counter()
        while not await asker.tools() and time.perf_counter() - begun < 10:
            pass
        yield Ours(asker, editor)
