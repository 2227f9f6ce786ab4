"""After `mcp-tools connect --permissions` agents run tools that only read without asking."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support import agents, processes
from tests.support import bridge as support
from tests.support import model as models
from tests.support.model import Model, Step
from tests.support.nvim import PROGRAM, Home, Spawn

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]  # the first one installs the agents

READ, OTHER = "nvim_editor_state", "nvim_mark"
MARK = """
mcp_tools.register({ name = 'mark', description = 'Marks', needs_approval = false, execute = function(ctx)
  _G.marked = true
  ctx('marked')
end })
"""
"""A tool that Neovim runs without asking, but not a bundled one that only reads."""
RESULT = "1 open file, 0 unsaved"

CLIENTS = {
    "claude": ("claude-code", "mcp__nvim-tools__%s"),
    "gemini": ("gemini-cli", "mcp_nvim-tools_%s"),
    "qwen": ("qwen-code", "mcp__nvim-tools__%s"),
    "opencode": ("opencode", "nvim-tools_%s"),
    "copilot": ("copilot-cli", "nvim-tools-%s"),
}
"""The name for `connect`, and the agent's name for a tool."""


def steps(name: str, model: Model) -> list[Step]:
    """The model calls a tool that only reads, then another one."""
    found: list[Step] = []
    for tool in (CLIENTS[name][1] % READ, CLIENTS[name][1] % OTHER):
        if name == "qwen":
            found.append(model.call("tool_search", query=f"select:{tool}"))
        found.append(model.call("tool_call", name=tool, arguments={}) if name == "qwen" else model.call(tool))
    return [*found, Step(text="done")]


async def output_of(*words: str, cwd: Path, env: dict[str, str]) -> tuple[int | None, str]:
    process = await processes.start(*words, cwd=cwd, env=env, stdout=-1, stderr=-2)
    output, _ = await process.communicate()
    return process.returncode, output.decode()


@pytest.mark.parametrize("name", CLIENTS)
async def test_tools_that_read_run_without_asking(name: str, spawn_nvim: Spawn, home: Home) -> None:
    """Without a terminal an agent refuses what it would ask for, so a result means that it did not ask."""
    agents.install()
    client, project = CLIENTS[name][0], home.make("project")
    (project / ".git").mkdir()
    nvim = (await support.start(spawn_nvim, cwd=project, setup="{ tools = 'recommended' }", init=MARK)).nvim
    async with models.serving() as model:
        argv, own = agents.AGENTS[name](home, project, model)
        if name == "opencode":  # by default it asks for nothing
            config = json.loads((project / "opencode.json").read_text())
            agents.write(project / "opencode.json", config | {"permission": {"bash": "ask"}})
            agents.write(home.make("config") / "opencode" / "opencode.json", {"permission": {"*": "ask"}})
        own["MCP_CONNECTION_NONBLOCKING"] = "0"
        env = {key: value for key, value in (agents.environment(home) | own).items() if value}

        async def connect(*words: str) -> tuple[int | None, str]:
            words = (*PROGRAM, "connect", client, *words, "--yes")
            return await output_of(*words, cwd=project, env=home.environment())

        async def requests() -> str:
            model.plan(*steps(name, model))
            flag = ("run",) if name == "opencode" else ("-p",)
            _, output = await output_of(*argv, *flag, "GO", cwd=project, env=env)
            assert model.requests, output
            return "\n".join(model.requests)

        code, output = await connect()
        assert code == 0, output
        before = await requests()
        code, output = await connect("--permissions")
        if name == "copilot":
            assert (code, "without asking" in output) == (1, True)
            assert RESULT in before
            return
        assert code == 0, output
        assert RESULT not in before
        after = await requests()
    assert RESULT in after
    assert not await nvim.lua("return _G.marked")
