"""Subscriptions over the real RPC verbs of the plugin."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from mcp_tools_nvim.neovim.nvim import NvimEditor
from mcp_tools_nvim.values import HelloInfo, Versions
from tests.support.nvim import Nvim

URI = "nvim://buffer/a.lua"
OPEN = """
require('mcp-tools').setup({ bridge = { autostart = false } })
vim.cmd.edit(vim.uv.cwd() .. '/a.lua')
"""
WATCHING = """
local count = 0
for _, command in ipairs(vim.api.nvim_get_autocmds({ event = 'BufReadPost' })) do
  count = count + (command.desc == 'mcp-tools: a client has subscribed' and 1 or 0)
end
return count
"""


async def attach(nvim: Nvim) -> tuple[NvimEditor, asyncio.Queue[str]]:
    editor = await NvimEditor.open(str(nvim.socket))
    await editor.hello(HelloInfo(1, 2, 2, "none", Versions("b", "p", "s", "a", "m")))
    received: asyncio.Queue[str] = asyncio.Queue()
    editor.on("updated", received.put_nowait)
    return editor, received


@pytest.mark.slow
async def test_the_subscriptions_of_a_closed_channel_end_and_others_stay(
    spawn_nvim: Callable[..., Awaitable[Nvim]],
) -> None:
    nvim = await spawn_nvim(init_lua=OPEN)
    (one, _), (other, received) = await attach(nvim), await attach(nvim)
    assert await one.subscribe("nvim://cursor") is None
    assert await one.subscribe(URI) is None
    assert await other.subscribe(URI) is None
    one.close()
    await one.closed
    gone = "return #vim.tbl_filter(function(c) return c.desc == 'mcp-tools: a client has subscribed' end, "
    await nvim.wait_for(gone + "vim.api.nvim_get_autocmds({ event = 'CursorMoved' })) == 0", timeout=4000)
    await nvim.lua("vim.api.nvim_buf_set_lines(0, 0, 1, false, { 'x' })")
    assert await asyncio.wait_for(received.get(), 2) == URI
    other.close()
    await other.closed
    await nvim.wait_for(WATCHING.replace("return count", "return count == 0"), timeout=4000)
