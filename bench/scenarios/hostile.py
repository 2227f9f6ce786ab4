"""The longest time that hostile input blocks the main thread: long lines, wide trees, floods of files."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from load import BenchError
from stage import Stage
from table import Row

from tests.support import nvim

HERE = Path(__file__).resolve().parents[1]
MOST_MS = 50
SECONDS, WORST = 240, 5
INIT = f"""
vim.g.loaded_python3_provider = 0
require('mcp-tools').setup({{
  bridge = {{ autostart = false, python = [[{sys.executable}]] }},
  tools = 'all',
  approval = {{ rule = function() return 'allow' end }},
}})
dofile([[{HERE / "hostile.lua"}]])
"""


async def measure(stage: Stage) -> list[Row]:
    """Calls each tool with its hostile input."""
    home = nvim.Home(stage.home.path / "hostile")
    home.path.mkdir()
    found = await run(stage, home)
    for row in sorted(found, key=lambda row: -row["held"]):
        print(f"  {row['held']:8.1f} ms  {row['name']}  {row.get('err', '')[:100]}", file=sys.stderr)
    worst = sorted(found, key=lambda row: -row["held"])[:WORST]
    broken = [f"{row['name']}: {row['err'][:100]}" for row in found if row.get("err")]
    return [
        Row(
            f"longest main-thread block with hostile input, {len(found)} inputs",
            ", ".join(f"{row['name']} {row['held']:.1f} ms" for row in worst),
            "; ".join([f"≤ {stage.reach(MOST_MS)}", *broken]),
            worst[0]["held"] <= stage.most(MOST_MS) and not broken,
        )
    ]


async def run(stage: Stage, home: nvim.Home) -> list[dict[str, Any]]:
    """Run all inputs in a new editor."""
    async with nvim.running(stage.program, home, init_lua=INIT, cwd=home.make("project")) as editor:
        await editor.lua("HOSTILE.start()", timeout=30_000)
        for _ in range(SECONDS):
            await asyncio.sleep(1)
            found: list[dict[str, Any]] | None = await editor.lua("return HOSTILE.found", timeout=60_000)
            if found:
                return found
        raise BenchError(f"hostile: {await editor.lua('return HOSTILE.at')} did not end")
