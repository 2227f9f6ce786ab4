"""Tools that plugins ship are there by themselves; nobody has to look for them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.support.bridge import Bridge, Transport
from tests.support.news import follow

INIT = "vim.opt.runtimepath:append([[{plugin}]]) vim.env.MCP_TOOLS_CACHE_TTL = '0'"
TOOL = """
return {{
  name = '{name}', description = 'x', annotations = {{ read_only = true }},
  execute = function(ctx) ctx('from {name}') end,
}}
"""


@pytest.mark.slow
async def test_the_first_list_has_them_and_later_ones_follow(
    start_bridge: Callable[..., Awaitable[Bridge]], tmp_path: Path, transport: Transport
) -> None:
    """The first client lists what the runtimepath has; one that comes later is told once it is time."""
    folder = tmp_path / "plugin" / "lua" / "mcp-tools" / "ext"
    folder.mkdir(parents=True)
    (folder / "first.lua").write_text(TOOL.format(name="first"))
    bridge = await start_bridge(init=INIT.format(plugin=tmp_path / "plugin"))
    async with follow(bridge, transport) as (client, news):
        assert "nvim_first" in {tool.name for tool in (await client.list_tools(cache_mode="bypass")).tools}
        (folder / "second.lua").write_text(TOOL.format(name="second"))
        await client.call_tool("nvim_first", {})
        await news.wait_for("tools")
        assert "nvim_second" in {tool.name for tool in (await client.list_tools(cache_mode="bypass")).tools}
        answer = await client.call_tool("nvim_second", {})
        assert answer.content[0].text == "from second"
