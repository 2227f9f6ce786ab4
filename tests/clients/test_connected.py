"""Third-party clients list our tools and call one, configured by `mcp-tools connect` and `config`.

Each over stdio and over HTTP. Agents use a scripted model on loopback; nothing else is reachable.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import shlex
import tomllib
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
from tests.support import agents, node
from tests.support import model as models
from tests.support.agents import output_of
from tests.support.bridge import Bridge, http_client
from tests.support.model import Model, Step
from tests.support.nvim import PROGRAM, ROOT, Home, new_home
from tests.support.results import text_of
from tests.support.shared import bridge_of

# The first one installs the agents.
pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow, pytest.mark.timeout(240)]

HELP = ROOT / "doc" / "mcp-tools-clients.txt"
TOOL, OTHER, VARIABLE = "nvim_record", "nvim_test_progress", "NVIM_TOKEN"
RECORD = """
_G.recorded = {}
mcp_tools.register({ name = 'record', description = 'Records a text', annotations = { read_only = true },
  args = { text = { type = 'string', required = true } },
  execute = function(ctx, args)
    table.insert(recorded, args.text)
    ctx(('%s was recorded by %d'):format(args.text, vim.uv.os_getpid()))
  end })
"""
FORMS = {"stdio": ("user",), "http": ("project", "--http")}
"""The scope of the files that each form is written to, and options of `connect`."""


@dataclass(frozen=True)
class Agent:
    """An agent: its name for `connect`, how its model calls our tool, whether it reads a variable."""

    client: str
    steps: Callable[[Model, str], list[Step]]
    variable: bool = True


def named(name: str) -> Callable[[Model, str], list[Step]]:
    """A call of our tool by the agent's name for it."""
    return lambda model, text: [model.call(name % TOOL, text=text)]


def deferred(model: Model, text: str) -> list[Step]:
    """Its model only gets the names of tools, and two tools to look one up and to call it."""
    tool = f"mcp__nvim-tools__{TOOL}"
    search = model.call("tool_search", query=f"select:{tool}")
    return [search, model.call("tool_call", name=tool, arguments={"text": text})]


AGENTS = {
    "claude": Agent("claude-code", named("mcp__nvim-tools__%s")),
    "codex": Agent("codex", named("%s")),
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
        return await output_of(*PROGRAM, *words, cwd=self.project, env=self.home.environment())

    async def received(self, text: str) -> str:
        """The tool's result; it was called once, with this text."""
        assert await self.bridge.nvim.lua("return recorded") == [text]
        await self.bridge.nvim.lua("recorded = {}")
        return f"{text} was recorded by {self.bridge.nvim.process.pid}"

    @contextlib.asynccontextmanager
    async def connected(self, agent: Agent, scope: str, *words: str) -> AsyncIterator[None]:
        """The agent's own files name this server until the end, and no longer after `disconnect`."""
        project = ("--project",) if scope == "project" else ()
        written = json.loads(await self.run("connect", agent.client, *project, *words, "--yes", "--json"))
        assert written["written"]
        assert self.bridge.token not in Path(written["path"]).read_text() or VARIABLE not in words
        try:
            yield
        finally:
            await self.run("disconnect", agent.client, *project, "--yes", "--json")
            path = Path(written["path"])
            assert not path.exists() or not is_named_in(path)


def is_named_in(path: Path) -> bool:
    """Whether an agent's configuration has our server."""
    text = path.read_text()
    if path.suffix == ".toml":
        return "nvim-tools" in tomllib.loads(text).get("mcp_servers", {})
    return "nvim-tools" in json.loads(text).get("mcpServers", {})


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def stage() -> AsyncIterator[Stage]:
    program = Path(nvims.read()["found"][nvims.REQUIRED])
    async with (
        models.serving() as model,
        bridge_of(program, init=RECORD, setup="{ tools = { 'test' } }") as bridge,
    ):
        yield Stage(bridge, model, bridge.nvim.home, bridge.nvim.home.make("cwd"))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", AGENTS)
async def test_an_agents_model_calls_a_tool_and_gets_its_result(stage: Stage, name: str, form: str) -> None:
    agents.install()
    agent, text, (scope, *words) = AGENTS[name], f"{name} over {form}", FORMS[form]
    if words and agent.variable:
        words += ["--env", VARIABLE]
    place = agents.Workspace(stage.home, stage.project, stage.model)
    argv, env = agents.AGENTS[name](stage.home, stage.project, stage.model)
    env[VARIABLE] = stage.bridge.token
    async with stage.connected(agent, scope, *words):
        stage.model.plan(*agent.steps(stage.model, text), Step(text="and that was all"))
        output = await agents.answer(name, place, "use the tool", (argv, env))
    assert "and that was all" in output
    assert stage.model.done, output
    assert OTHER in stage.model.requests[0]
    assert await stage.received(text) in stage.model.requests[-1]


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["claude", "codex", "gemini", "copilot"])
async def test_a_command_of_the_help_connects_the_agent(stage: Stage, name: str) -> None:
    """As printed, except for the two words to replace."""
    agents.install()
    [block] = re.findall(r">sh\n( +claude mcp add .*?)^<", HELP.read_text(), re.MULTILINE | re.DOTALL)
    url, token = f"http://127.0.0.1:{stage.bridge.port}/mcp", stage.bridge.token
    commands = re.sub(r"\bTOKEN\b", token, block.replace("\\\n", "").replace("URL", url)).splitlines()
    [command] = [each.strip() for each in commands if each.strip().startswith(f"{name} ")]
    text = f"{name} by hand"
    with new_home() as home:
        place = agents.Workspace(home, home.make("cwd"), stage.model)
        argv, env = agents.AGENTS[name](home, place.cwd, stage.model)
        env["NVIM_MCP_TOKEN"] = token
        program = shlex.join(itertools.takewhile(lambda word: not word.startswith("-"), argv))
        words = ["sh", "-ec", program + command.removeprefix(name)]
        await output_of(*words, cwd=place.cwd, env=agents.environment(home) | env)
        stage.model.plan(*AGENTS[name].steps(stage.model, text), Step(text="and that was all"))
        output = await agents.answer(name, place, "use the tool", (argv, env))
    assert "and that was all" in output
    assert await stage.received(text) in stage.model.requests[-1]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", SCRIPTS)
async def test_a_client_made_with_an_sdk_calls_a_tool(stage: Stage, name: str, form: str) -> None:
    text, file = f"{name} over {form}", await configuration(stage, form)
    args = (SCRIPTS[name], str(file), TOOL, text)
    script = Path(__file__).with_name("configured.mjs")
    done = await node.run(script, *args, home=stage.project, env=stage.home.environment())
    assert done.code == 0, done.err
    names, content = (json.loads(line) for line in done.out.splitlines())
    assert {TOOL, OTHER} <= set(names)
    assert content == [{"type": "text", "text": await stage.received(text)}]


@pytest.mark.parametrize("form", FORMS)
async def test_the_inspector_calls_a_tool(stage: Stage, form: str) -> None:
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
async def test_a_python_client_calls_a_tool(stage: Stage, form: str) -> None:
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
    """A file with the output of `mcp-tools config` for Claude Code, which most others can read."""
    _, *words = FORMS[form]
    written = json.loads(await stage.run("config", "claude-code", *words, "--json"))
    config = json.loads(written["text"])
    if form == "stdio":  # the Inspector passes no variable with the directories of this editor
        places = {key: value for key, value in stage.home.environment().items() if key.startswith("XDG_")}
        config["mcpServers"]["nvim-tools"]["env"] = places
    file = stage.home.make("tmp") / f"{form}.json"
    file.write_text(json.dumps(config))
    return file


# The exit codes of MCP Inspector for this server

OK, AUTH_REQUIRED, TOOL_ERROR = 0, 3, 5


async def inspect(
    bridge: Bridge, home: Path, *args: str, token: str | None = None, sse: bool = False
) -> node.Done:
    """Run it against the bridge."""
    url = f"{bridge.url}/{'sse' if sse else 'mcp'}"
    transport = ("--transport", "sse" if sse else "http", "--stored-auth-only", "--format", "json")
    header = ("--header", f"Authorization: Bearer {token or bridge.token}")
    return await node.run(INSPECTOR, "--cli", url, *transport, *header, *args, home=home)


async def test_its_strict_mode_accepts_the_schemas_of_bundled_tools(bridge: Bridge, tmp_path: Path) -> None:
    done = await inspect(bridge, tmp_path, "--method", "tools/list", "--strict")
    assert done.code == OK, done.err
    assert "nvim_file_read" in [tool["name"] for tool in done.json()["result"]["tools"]]
    # These two of tests/e2e/tools.lua accept anything.
    assert set(re.findall(r'^Warning: tool "(.+)"', done.err, re.MULTILINE)) == {"nvim_echo", "nvim_later"}


async def test_it_distinguishes_a_failed_tool_from_a_failed_server(bridge: Bridge, tmp_path: Path) -> None:
    call = ["--method", "tools/call", "--tool-name", "nvim_fail", "--tool-arg", "how=on purpose"]
    done = await inspect(bridge, tmp_path, *call)
    assert done.code == TOOL_ERROR, done.err
    result = done.json()["result"]
    assert (result["isError"], result["content"][0]["text"]) == (True, "Error: on purpose")


@pytest.mark.parametrize("sse", [False, True], ids=["http", "sse"])
async def test_a_wrong_token_starts_no_login(bridge: Bridge, tmp_path: Path, sse: bool) -> None:
    done = await inspect(bridge, tmp_path, "--method", "tools/list", token="wrong", sse=sse)
    assert done.code == AUTH_REQUIRED, done.err
    assert "auth_required" in done.err
