"""Every bundled tool, called by a real client and approved by the user, has a valid result."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from tests.support.bridge import Start, connect
from tests.support.results import text_of

pytestmark = [pytest.mark.asyncio, pytest.mark.every_nvim, pytest.mark.slow]

SPECS = Path(__file__).resolve().parents[1] / "lua"
BROKEN = {"execution_error", "not_serializable", "invalid_output", "editor_blocked"}
"""Codes of bugs in the plugin."""
AT_A_TIME = 6
PATIENCE = 3.0
"""Seconds until a tool is cancelled."""

# Approves everything, in a project whose files are not open.
INIT = f"""
package.path = '{SPECS}/?.lua;{SPECS}/support/?.lua;' .. package.path
local root = vim.uv.fs_realpath(vim.fn.getcwd()) .. '/project'
vim.fn.mkdir(root .. '/.git', 'p')
vim.fn.writefile({{ '[core]' }}, root .. '/.git/config')
vim.cmd.cd(root)
vim.o.lines = 200  -- else a picker gives way to a window
vim.ui.select = function(items, _, on_choice)
  _G.asked = (_G.asked or 0) + 1
  vim.schedule(function() on_choice(items[1], 1) end)
end
local every = require('every_tool')
local names = {{}}
for _, file in ipairs(probe.bundled.files('tools')) do
  table.insert(names, file.name)
end
mcp_tools.setup({{ tools = names, ui = {{ approval = 'select' }} }})
local list = {{}}
for i, tool in ipairs(every.tools()) do
  for _, args in ipairs({{ every.arguments(tool.input_schema, {{}}), unpack(every.ways(tool.input_schema, {{
    path = ('%d.lua'):format(i), uri = vim.uri_from_fname(('%s/%d.lua'):format(root, i)), glob = '*.lua',
    other = ('new-%d.lua'):format(i), word = 'sample', bufnr = 0 }})) }}) do
    table.insert(list, {{ name = tool.name, args = args }})
  end
  vim.fn.writefile({{ 'local sample = 1', 'return sample' }}, ('%s/%d.lua'):format(root, i))
end
return vim.json.encode(list)
"""
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("file_edit", {"path": "1.lua", "edits": [{"search": "local sample", "replace": "local other"}]}),
    ("file_write", {"path": "folder/made.lua", "text": "return 1\n"}),
    ("symbol_replace", {"path": "2.lua", "symbol": "sample", "body": "local function sample() end"}),
    ("symbol_insert", {"path": "3.lua", "symbol": "sample", "where": "before", "text": "local a = 1"}),
    ("file_move", {"path": "4.lua", "new_path": "moved.lua"}),
    ("shell_run", {"command": "true"}),
    ("editor_command", {"command": "let g:ran = 1"}),
    ("editor_eval_lua", {"code": "return 1"}),
]
"""Calls with an effect, which those made from schemas would not have."""
LEFT_OUT = ("ask_user", "test_async_prompt", "editor_servers", "change_revert")
"""They wait for the user to type, or end or revert the work of other tools."""


async def answered(client: Client, name: str, arguments: dict[str, Any]) -> str | None:
    """The fault of an answer, if any; the client checks it against the tool's `outputSchema`."""
    try:
        async with asyncio.timeout(PATIENCE):
            result = await client.call_tool(f"nvim_{name}", arguments)
    except TimeoutError:
        return None
    except RuntimeError as fault:
        return f"{name} {arguments}: {fault}"
    content = result.structured_content or (result.meta or {}).get("mcp-tools.nvim/error") or {}
    broken = result.is_error and content.get("code") in BROKEN
    return f"{name} {arguments}: {text_of(result)}" if broken else None


async def test_every_result_is_valid(start_bridge: Start) -> None:
    bridge = await start_bridge()
    await bridge.nvim.attach_ui()
    ways = json.loads(await bridge.nvim.lua(INIT))
    async with connect(bridge, "sessions") as client:
        await client.list_tools()
        turn = asyncio.Semaphore(AT_A_TIME)

        async def one(name: str, arguments: Any) -> str | None:
            async with turn:
                return await answered(client, name, arguments or {})

        calls = [one(*call) for call in CALLS]
        calls += [one(way["name"], way["args"]) for way in ways if way["name"] not in LEFT_OUT]
        faults = [fault for fault in await asyncio.gather(*calls) if fault]
    assert faults == []
    assert await bridge.nvim.lua("return _G.asked") > 20
    assert await bridge.nvim.lua("return vim.fn.readfile('1.lua')[1]") == "local other = 1"
