"""Programs of others list our tools and call one, configured by what `mcp-tools connect` and `config` write.

Each over stdio and over HTTP. Agents ask a scripted model on loopback; nothing else can be reached.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from tests.conftest import nvims
from tests.support import agents, node, processes
from tests.support import model as models
from tests.support.bridge import Bridge, http_client
from tests.support.model import Model, Step
from tests.support.nvim import ROOT, Home
from tests.support.results import text_of
from tests.support.shared import bridge_of

# The first one installs the agents.
pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow, pytest.mark.timeout(240)]

PROGRAM = [sys.executable, str(ROOT / "bridge" / "mcp_tools_nvim")]
TOOL, OTHER, VARIABLE = "nvim_hear", "nvim_test_progress", "NVIM_TOKEN"
HEAR = """
_G.heard = {}
mcp_tools.register({ name = 'hear', description = 'Hears a text', annotations = { read_only = true },
  args = { text = { type = 'string', required = true } },
  execute = function(ctx, args)
    table.insert(heard, args.text)
    ctx(('%s was heard by %d'):format(args.text, vim.uv.os_getpid()))
  end })
"""
FORMS = {"stdio": ("user",), "http": ("project", "--http")}
"""In whose files each is written, and how `connect` is told of it."""


@dataclass(frozen=True)
class Agent:
    """One that has a model.

    Attributes:
        client: its name for `connect`.
        steps: what the model does to call our tool.
        variable: it can read the token from a variable.
    """

    client: str
    steps: Callable[[Model, str], list[Step]]
    variable: bool = True


def named(name: str) -> Callable[[Model, str], list[Step]]:
    """Our tool, under the name that the agent gives it."""
    return lambda model, text: [model.call(name % TOOL, text=text)]


def deferred(model: Model, text: str) -> list[Step]:
    """It shows its model the names of tools alone, and has two tools to look one up and to call it."""
    tool = f"mcp__nvim-tools__{TOOL}"
    search = model.call("tool_search", query=f"select:{tool}")
    return [search, model.call("tool_call", name=tool, arguments={"text": text})]


AGENTS = {
    "claude": Agent("claude-code", named("mcp__nvim-tools__%s")),
    "gemini": Agent("gemini-cli", named("mcp_nvim-tools_%s")),
    "qwen": Agent("qwen-code", deferred),
    "copilot": Agent("copilot-cli", named("nvim-tools-%s"), variable=False),
    "opencode": Agent("opencode", named("nvim-tools_%s")),
}
SCRIPTS = {"typescript-v1": "v1", "typescript-v2": "v2", "ai-sdk": "ai"}
INSPECTOR = node.MODULES / "@modelcontextprotocol/inspector/clients/launcher/build/index.js"


@dataclass(frozen=True)
class Stage:
    """An editor in a project, and a model."""

    bridge: Bridge
    model: Model
    home: Home
    project: Path

    async def run(self, *words: str) -> str:
        """`mcp-tools`, in the project."""
        process = await processes.start(
            *PROGRAM,
            *words,
            cwd=self.project,
            env=self.home.environment(),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        output, errors = await process.communicate()
        assert process.returncode == 0, errors.decode()
        return output.decode()

    async def received(self, text: str) -> str:
        """What the tool answers; it was called once, with this text."""
        assert await self.bridge.nvim.lua("return heard") == [text]
        await self.bridge.nvim.lua("heard = {}")
        return f"{text} was heard by {self.bridge.nvim.process.pid}"

    @contextlib.asynccontextmanager
    async def connected(self, agent: Agent, scope: str, *words: str) -> AsyncIterator[None]:
        """The agent's own files name this server for a while; the undoing takes it out."""
        project = ("--project",) if scope == "project" else ()
        told = json.loads(await self.run("connect", agent.client, *project, *words, "--yes", "--json"))
        assert told["written"]
        assert self.bridge.token not in Path(told["path"]).read_text() or VARIABLE not in words
        try:
            yield
        finally:
            await self.run("disconnect", agent.client, *project, "--yes", "--json")
            path = Path(told["path"])
            assert not path.exists() or "nvim-tools" not in json.loads(path.read_text()).get("mcpServers", {})


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def stage() -> AsyncIterator[Stage]:
    program = Path(nvims.read()["found"][nvims.REQUIRED])
    async with (
        models.serving() as model,
        bridge_of(program, init=HEAR, setup="{ tools = { 'test' } }") as bridge,
    ):
        yield Stage(bridge, model, bridge.nvim.home, bridge.nvim.home.make("cwd"))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", AGENTS)
async def test_agents(stage: Stage, name: str, form: str) -> None:
    """Its model is told of our tools, calls one, and gets what the editor answered."""
    agents.install()
    agent, text, (scope, *words) = AGENTS[name], f"{name} over {form}", FORMS[form]
    if words and agent.variable:
        words += ["--env", VARIABLE]
    place = agents.Workspace(stage.home, stage.project, stage.model)
    argv, env = agents.AGENTS[name](stage.home, stage.project, stage.model)
    env[VARIABLE] = stage.bridge.token
    async with stage.connected(agent, scope, *words):
        stage.model.plan(*agent.steps(stage.model, text), Step(text="and that was all"))
        said = await agents.answer(name, place, "use the tool", (argv, env))
    assert "and that was all" in said
    assert stage.model.done, said
    assert OTHER in stage.model.requests[0]
    assert await stage.received(text) in stage.model.requests[-1]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", SCRIPTS)
async def test_libraries(stage: Stage, name: str, form: str) -> None:
    """Made with an SDK, from the configuration that most clients read."""
    text, file = f"{name} over {form}", await configuration(stage, form)
    args = (SCRIPTS[name], str(file), TOOL, text)
    script = Path(__file__).with_name("configured.mjs")
    done = await node.run(script, *args, home=stage.project, env=stage.home.environment())
    assert done.code == 0, done.err
    names, content = (json.loads(line) for line in done.out.splitlines())
    assert {TOOL, OTHER} <= set(names)
    assert content == [{"type": "text", "text": await stage.received(text)}]


@pytest.mark.parametrize("form", FORMS)
async def test_inspector(stage: Stage, form: str) -> None:
    """From the same file."""
    file, home = await configuration(stage, form), stage.project
    env = stage.home.environment()

    async def ask(*words: str) -> Any:
        config = ("--config", str(file), "--server", "nvim-tools")
        always = ("--cli", *config, "--stored-auth-only", "--format", "json")
        done = await node.run(INSPECTOR, *always, *words, home=home, env=env)
        assert done.code == 0, done.err
        return done.json()["result"]

    names = {tool["name"] for tool in (await ask("--method", "tools/list"))["tools"]}
    assert {TOOL, OTHER} <= names
    arguments = ("--tool-name", TOOL, "--tool-args-json", json.dumps({"text": f"inspector over {form}"}))
    result = await ask("--method", "tools/call", *arguments)
    assert result["content"] == [{"type": "text", "text": await stage.received(f"inspector over {form}")}]


@pytest.mark.parametrize("form", FORMS)
async def test_python_sdk(stage: Stage, form: str) -> None:
    """From the same file."""
    entry = json.loads((await configuration(stage, form)).read_text())["mcpServers"]["nvim-tools"]
    async with contextlib.AsyncExitStack() as stack:
        if form == "http":
            http = await stack.enter_async_context(http_client(entry["headers"]))
            source = streamable_http_client(entry["url"], http_client=http)
        else:
            source = stdio_client(StdioServerParameters(**entry, cwd=stage.project))
        client = await stack.enter_async_context(Client(source))
        assert {TOOL, OTHER} <= {tool.name for tool in (await client.list_tools()).tools}
        result = await client.call_tool(TOOL, {"text": form})
    assert text_of(result) == await stage.received(form)


async def configuration(stage: Stage, form: str) -> Path:
    """A file with what `mcp-tools config` prints for Claude Code, whose form most others read."""
    _, *words = FORMS[form]
    told = json.loads(await stage.run("config", "claude-code", *words, "--json"))
    config = json.loads(told["text"])
    if form == "stdio":  # the Inspector hands down no variable that says where this editor is
        places = {key: value for key, value in stage.home.environment().items() if key.startswith("XDG_")}
        config["mcpServers"]["nvim-tools"]["env"] = places
    file = stage.home.make("tmp") / f"{form}.json"
    file.write_text(json.dumps(config))
    return file
