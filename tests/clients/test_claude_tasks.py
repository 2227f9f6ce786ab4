"""Claude Code gets the task of a long call, while its model continues."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable

import pytest

from tests.support import agents, bridge
from tests.support import model as models
from tests.support.agents import Place
from tests.support.model import Step
from tests.support.nvim import Home, Nvim

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

NAME = "mcp__nvim-tools__nvim_slow"
ENTER = 0.3
"""Seconds before Enter; one that comes faster is taken for a part of pasted text."""
TOOL = """
mcp_tools.register({ name = 'slow', description = 'Takes long', annotations = { read_only = true },
  run = function(ctx)
    ctx:await(function(done) Finish = done end)
    return 'the result of the task'
  end })
"""


async def test_a_long_call_is_a_task_in_claude_code(
    spawn_nvim: Callable[..., Awaitable[Nvim]], home: Home
) -> None:
    agents.install()
    setup = bridge.with_limits("{}", task_after=500)
    made = await bridge.start(spawn_nvim, setup=setup, init=TOOL)
    cwd = home.make("project")
    async with models.serving() as model:
        server = {"type": "http", "url": f"{made.url}/mcp", "headers": made.headers}
        (cwd / ".mcp.json").write_text(json.dumps({"mcpServers": {"nvim-tools": server}}))
        allowed = {"permissions": {"allow": ["mcp__nvim-tools"]}, "enableAllProjectMcpServers": True}
        agents.write(home.make("home") / ".claude" / "settings.json", allowed)
        place = Place(home, cwd, model)
        async with agents.running("claude", place) as terminal:
            await terminal.shows("for shortcuts", timeout=60_000)
            while not model.requests or NAME not in model.requests[-1]:  # it connects meanwhile
                model.plan(Step(text="ready"))
                await terminal.type("Are you ready?")
                await asyncio.sleep(ENTER)
                await terminal.press("Enter")
                await model.asked("Are you ready?")
            model.plan(model.call(NAME), Step(text="it runs"), Step(text="it has ended"))
            await asyncio.sleep(1)  # it ends the answer
            await terminal.type("Do it.")
            await asyncio.sleep(ENTER)
            await terminal.press("Enter")
            await model.asked("started server-side task")
            await made.nvim.lua("Finish()")
            await model.asked("the result of the task")
