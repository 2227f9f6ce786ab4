"""Tools of plugins are found automatically."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.bridge import Start, Transport
from tests.support.news import follow

INIT = "vim.opt.runtimepath:append([[{plugin}]]) vim.env.MCP_TOOLS_CACHE_TTL = '0'"
TOOL = """
return {{
  name = '{name}', description = 'x', annotations = {{ read_only = true }},
  execute = function(ctx) ctx('from {name}') end,
}}
"""


@pytest.mark.slow
async def test_plugins_tools_are_listed_and_announced(
    start_bridge: Start, tmp_path: Path, transport: Transport
) -> None:
    directory = tmp_path / "plugin" / "lua" / "mcp-tools" / "ext"
    directory.mkdir(parents=True)
    (directory / "first.lua").write_text(TOOL.format(name="first"))
    bridge = await start_bridge(init=INIT.format(plugin=tmp_path / "plugin"))
    async with follow(bridge, transport) as (client, news):
        assert "nvim_first" in {tool.name for tool in (await client.list_tools(cache_mode="bypass")).tools}
        (directory / "second.lua").write_text(TOOL.format(name="second"))
        await client.call_tool("nvim_first", {})
        await news.wait_for("tools")
        assert "nvim_second" in {tool.name for tool in (await client.list_tools(cache_mode="bypass")).tools}
        answer = await client.call_tool("nvim_second", {})
        assert answer.content[0].text == "from second"
