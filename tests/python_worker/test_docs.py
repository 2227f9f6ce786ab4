"""The Python examples of README and help work."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tests.support.bridge import INIT
from tests.support.nvim import ROOT, Spawn
from tests.support.python_worker import Caller

HELP = ROOT / "doc" / "mcp-tools-api.txt"


def first_tool() -> str:
    """Returns the block of the README that is marked as the first tool in Python."""
    found = re.search(
        r"^<!-- first python tool -->\n```python\n(.*?)^```$",
        (ROOT / "README.md").read_text(),
        re.MULTILINE | re.DOTALL,
    )
    assert found
    return found[1]


def help_modules() -> list[str]:
    """Returns the modules with tools in the help."""
    blocks = re.findall(r">python\n(.*?)^<", HELP.read_text(), re.MULTILINE | re.DOTALL)
    return [re.sub(r"^    ", "", block, flags=re.MULTILINE) for block in blocks if "@mcp_tool" in block]


async def test_the_examples_of_readme_and_help_work_unchanged(spawn_nvim: Spawn, tmp_path: Path) -> None:
    assert len(first_tool().splitlines()) == 10
    directory = tmp_path / "mcp_tools"
    directory.mkdir()
    (directory / "first.py").write_text(first_tool())
    for number, block in enumerate(help_modules()):
        block = block.replace("def word_lengths", "def help_word_lengths")
        (directory / f"help_{number}.py").write_text(block)
    init = INIT.format(python=sys.executable, setup="{}", init=f"vim.opt.runtimepath:append([[{tmp_path}]])")
    nvim = await spawn_nvim(init_lua=init)
    await nvim.lua("probe.core.get()")
    await nvim.wait_for("return require('mcp-tools').list_tools().word_lengths ~= nil", timeout=20_000)

    tools = Caller(nvim, None)
    for name in ("word_lengths", "help_word_lengths"):
        assert (await tools.call(name, text="a bb ccc", least=2)).value == {"bb": 2, "ccc": 3}
    listed = await nvim.lua("return vim.tbl_keys(require('mcp-tools').list_tools())")
    assert set(listed) == {"word_lengths", "help_word_lengths", "build", "greet"}
    assert await nvim.lua("return probe.discovery.failures()") == []
