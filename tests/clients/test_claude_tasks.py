"""Claude Code gets the task of a long call, while its model continues."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from tests.support import agents, bridge
from tests.support import model as models
from tests.support.agents import Workspace
from tests.support.bridge import Bridge
from tests.support.model import Model, Step
from tests.support.nvim import ROOT, Home, Spawn
from tests.support.terminal import Terminal

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

SLOW, QUICK = "mcp__nvim-tools__nvim_slow", "mcp__nvim-tools__nvim_quick"
ENTER = 0.3
"""Seconds before Enter; one that comes faster is taken for a part of pasted text."""
TOOLS = """
mcp_tools.register({ name = 'slow', description = 'Takes long', annotations = { read_only = true },
  run = function(ctx)
    ctx:await(function(done) Finish = done end)
    return 'the result of the task'
  end })
mcp_tools.register({ name = 'quick', description = 'Is quick', annotations = { read_only = true },
  args = { number = { type = 'integer', required = true } },
  execute = function(ctx, args) ctx(('%d answered by %d'):format(args.number, vim.uv.os_getpid())) end })
"""

Start = Callable[[], Awaitable[Bridge]]


@pytest.fixture
def start(spawn_nvim: Spawn) -> Start:
    """Starts a bridge whose calls become tasks after 0.5 s."""
    agents.install()
    setup = bridge.with_limits("{}", task_after=500)
    return lambda: bridge.start(spawn_nvim, setup=setup, init=TOOLS)


class Claude:
    """Claude Code in a terminal."""

    def __init__(self, terminal: Terminal, model: Model) -> None:
        self.terminal = terminal
        self.model = model

    async def prompt(self, text: str) -> None:
        await self.terminal.type(text)
        await asyncio.sleep(ENTER)
        await self.terminal.press("Enter")

    async def has_tools(self) -> None:
        """Asks until its model gets our tools: Claude Code connects meanwhile."""
        self.model.plan(Step(text="ready"))
        while not self.model.requests or QUICK not in self.model.requests[-1]:
            self.model.plan(Step(text="ready"))
            await self.prompt("Are you ready?")
            await self.model.received("Are you ready?")
        await asyncio.sleep(1)  # it ends the answer

    async def call_quick(self, made: Bridge) -> None:
        """Calls the quick tool until the editor of a bridge answers; a call fails while another one ends."""
        async with asyncio.timeout(60):
            for number in itertools.count(int(time.monotonic())):
                self.model.plan(self.model.call(QUICK, number=number), Step(text="answered"))
                await self.prompt("Be quick.")
                while not self.model.done:
                    await asyncio.sleep(0.1)
                await asyncio.sleep(1)  # it ends the answer
                if f"{number} answered by {made.nvim.process.pid}" in self.model.requests[-1]:
                    return


@contextlib.asynccontextmanager
async def claude(home: Home, server: dict[str, object]) -> AsyncIterator[Claude]:
    cwd = home.make("project")
    async with models.serving() as model:
        (cwd / ".mcp.json").write_text(json.dumps({"mcpServers": {"nvim-tools": server}}))
        allowed = {"permissions": {"allow": ["mcp__nvim-tools"]}, "enableAllProjectMcpServers": True}
        agents.write(home.make("home") / ".claude" / "settings.json", allowed)
        async with agents.running("claude", Workspace(home, cwd, model)) as terminal:
            await terminal.shows("for shortcuts", timeout=60_000)
            yield Claude(terminal, model)


def stdio(home: Home) -> dict[str, object]:
    """Returns the server entry of the relay."""
    args = [str(ROOT / "bridge" / "mcp_tools_nvim"), "stdio", "--root", str(home.make("cwd"))]
    return {"command": sys.executable, "args": args}


@pytest.mark.parametrize("transport", ["http", "stdio"])
async def test_a_long_call_is_a_task_in_claude_code(start: Start, home: Home, transport: str) -> None:
    made = await start()
    async with bridge.connect(made, "stateless") as client:
        await client.list_tools()  # Claude Code opens a session if it is not answered within 3 s
    http: dict[str, object] = {"type": "http", "url": f"{made.url}/mcp", "headers": made.headers}
    async with claude(home, http if transport == "http" else stdio(home)) as agent:
        await agent.has_tools()
        agent.model.plan(agent.model.call(SLOW), Step(text="it runs"), Step(text="it has ended"))
        await agent.prompt("Do it.")
        await agent.model.received("started server-side task")
        await made.nvim.lua("Finish()")
        await agent.model.received("the result of the task")


async def test_claude_code_continues_over_stdio_after_restarts(start: Start, home: Home) -> None:
    """It starts before the editor, and gets the tools again whatever ended meanwhile."""
    async with claude(home, stdio(home)) as agent:
        made = await start()
        await agent.has_tools()
        await agent.call_quick(made)
        for end in ("vim.cmd('McpTools restart')", "vim.uv.kill(mcp_tools.status().pid, 9)"):
            await made.nvim.lua(end)
            await agent.call_quick(made)
        await made.nvim.stop()
        made = await start()
        await agent.has_tools()
        await agent.call_quick(made)
        agent.model.plan(agent.model.call(SLOW), Step(text="it runs"), Step(text="it has ended"))
        await agent.prompt("Do it.")
        await agent.model.received("started server-side task")
        await made.nvim.lua("Finish()")
        await agent.model.received("the result of the task")
