"""The current buffer over MCP: its text leaves the editor only where its file may be read."""

from __future__ import annotations

import pytest

from tests.support.bridge import Bridge, Transport, connect
from tests.support.results import error_of, text_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

SECRET = "KEY_that_must_not_leave"

OPEN = """
local path, marked = ...
vim.fn.mkdir(vim.fs.dirname(path), 'p')
vim.fn.writefile({ 'KEY_that_must_not_leave' }, path)
vim.cmd.edit(path)
vim.b.sensitive = marked or nil
return vim.api.nvim_get_current_buf()
"""


@pytest.mark.parametrize(
    ("name", "marked"),
    [(".env", False), (".git/config", False), ("plain.txt", True), ("../outside.txt", False)],
    ids=["sensitive", "git", "marked", "outside"],
)
async def test_current_buffer(tools_bridge: Bridge, transport: Transport, name: str, marked: bool) -> None:
    """A buffer that no one may read stays unread as the current one, in its window and beside another."""
    nvim = tools_bridge.nvim
    root = await nvim.lua("return probe.project.root()")
    bufnr = await nvim.lua(OPEN, f"{root}/{name}", marked)
    try:
        async with connect(tools_bridge, transport) as client:
            for command in ("", "new | setlocal buftype=nofile"):
                await nvim.lua("vim.cmd(...)", command)
                for arguments in ({"bufnr": 0}, {"bufnr": bufnr}, {"path": f"{root}/{name}"}):
                    result = await client.call_tool("nvim_buffer_read", arguments)
                    assert error_of(result)["code"] == "access_denied", (command, arguments)
                    assert SECRET not in result.model_dump_json()
            await nvim.lua(OPEN, f"{root}/readable.txt", False)
            assert SECRET in text_of(await client.call_tool("nvim_buffer_read", {"bufnr": 0}))
    finally:
        await nvim.lua("vim.cmd('silent only | %bwipeout!')")
