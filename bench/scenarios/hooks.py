"""The hook of a terminal agent, which waits for it: the process compared with Python alone."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from statistics import median

from rounds import interleaved
from stage import Stage
from table import Row

from tests.support import bridge, nvim, processes
from tests.support.nvim import Home

ROOT = Path(__file__).resolve().parents[2]
HOOK = ["-I", str(ROOT / "bridge" / "mcp_tools_nvim" / "relay" / "hook.py"), "claude"]
FLOOR = ["-I", "-c", "import json, socket"]
TIMES, BLOCKED_MS = 3, 200
RUNS = 7
BLOCK = "local ms = ... vim.schedule(function() vim.uv.sleep(ms) end)"


async def measure(stage: Stage) -> list[Row]:
    """Runs the rounds with a separate editor and bridge."""
    home = Home(stage.home.path / "hooks")
    home.path.mkdir()
    project, elsewhere = home.make("project"), home.make("elsewhere")
    (project / "a.txt").write_text("one\n")
    init = bridge.INIT.format(python=sys.executable, setup="{}", init="")
    sessions = count()

    async def run(arguments: list[str], cwd: Path) -> float:
        event = {"hook_event_name": "UserPromptSubmit", "prompt": "x", "session_id": str(next(sessions))}
        given = json.dumps(event | {"cwd": str(cwd)}).encode()
        begun = time.perf_counter()
        process = await processes.start(
            sys.executable, *arguments, env=home.environment(), cwd=cwd, stdin=-1, stdout=-1
        )
        output, _ = await process.communicate(given)
        took = (time.perf_counter() - begun) * 1000
        expected = arguments is HOOK and cwd == project and not blocked
        assert (b"a.txt" in output) is expected, output
        return took

    def runs(arguments: list[str], cwd: Path) -> Callable[[], Awaitable[float]]:
        async def one() -> float:
            return median([await run(arguments, cwd) for _ in range(RUNS)])

        return one

    blocked = False
    async with nvim.running(stage.program, home, init_lua=init, cwd=project, args=["a.txt"]) as editor:
        await editor.lua("mcp_tools.start()")
        await bridge.ready(editor)
        await run(["-I", "-c", ""], project)
        rounds = await interleaved(
            {
                "floor": runs(FLOOR, project),
                "absent": runs(HOOK, elsewhere),
                "idle": runs(HOOK, project),
            },
            stage.amount.rounds,
        )
        floor, absent, idle = (median(rounds.samples[name]) for name in ("floor", "absent", "idle"))
        blocked = True
        await editor.request("nvim_exec_lua", BLOCK, [4000])
        waits = await runs(HOOK, project)()
        await editor.lua("return 0")  # waits until it can quit
    return [
        Row(
            "hook: whole process, no editor / idle editor",
            f"{absent:.0f} / {idle:.0f} ms (Python alone {floor:.0f})",
            f"≤ {TIMES} × Python",
            max(absent, idle) <= TIMES * floor,
        ),
        Row(
            "hook: more with a blocked editor",
            f"{waits - idle:.0f} ms",
            f"≤ {BLOCKED_MS} ms",
            waits - idle <= BLOCKED_MS,
        ),
    ]
