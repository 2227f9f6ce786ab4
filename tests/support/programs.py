"""A Neovim for Python programs that call its tools by `mcp_tools_nvim.api`."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from . import processes
from .bridge import ROOT_TOOLS
from .nvim import ROOT, Nvim, Spawn

SETUP = """
require('mcp-tools.config').change({{ tools = false }}) -- only those of the test
require('mcp-tools').setup(vim.tbl_deep_extend('force', {{ bridge = {{ autostart = false }} }}, {setup}))
{tools}
_G.channels = function()
  return #vim.tbl_filter(function(channel) return channel.stream == 'socket' end, vim.api.nvim_list_chans())
end
_G.pending = function() return require('mcp-tools.registry').pending_count() end
"""

SCRIPT = """
import sys
from mcp_tools_nvim.api import *
sys.excepthook = lambda kind, value, trace: print(kind.__name__, flush=True)
"""


async def editor(spawn_nvim: Spawn, setup: str = "{}", **options: Any) -> Nvim:
    """A Neovim with the tools of tests/e2e/tools.lua, and without a bridge."""
    return await spawn_nvim(init_lua=SETUP.format(setup=setup, tools=ROOT_TOOLS), **options)


async def script(code: str, nvim: Nvim, **environment: str) -> asyncio.subprocess.Process:
    """Starts a Python program outside of the editor, with its directories.

    Args:
        code: follows `from mcp_tools_nvim.api import *`.
        nvim: the editor.
        environment: variables, such as NVIM.
    """
    env = nvim.home.environment() | {"PYTHONPATH": str(ROOT / "bridge")} | environment
    command, cwd, pipe = (sys.executable, "-c", SCRIPT + code), nvim.home.make("cwd"), asyncio.subprocess.PIPE
    return await processes.start(*command, env=env, cwd=cwd, stdout=pipe)


async def output_of(process: asyncio.subprocess.Process) -> str:
    """The output of a script after its end."""
    async with asyncio.timeout(20):
        output, _ = await process.communicate()
    return output.decode().strip()
