"""LSP clients of agents use the editor's language servers, configured by `mcp-tools connect`."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support import agents, lsp
from tests.support import bridge as support
from tests.support import model as models
from tests.support.model import Model, Step
from tests.support.nvim import PROGRAM, Nvim, Spawn

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]  # the first one installs the agents

SHELF = 'class Shelf:\n    def put(self, thing: str) -> "Shelf":\n        return self\n'
USER = 'from shelf import Shelf\n\n\ndef fill(shelf: Shelf) -> Shelf:\n    return shelf.put("b")\n'
PLACE = {"line": 5, "character": 19}
"""Where the file calls `put`, from 1."""
PATIENCE = 150_000  # ms


@dataclass(frozen=True)
class Case:
    """One agent.

    Attributes:
        client: its name for `connect`.
        steps: of its model, beginning with a search for a definition.
        results: parts of what its model gets.
        args: from the advice of `connect`; %s is the directory of the file.
        env: from the same.
        project: whether it is connected by files of the project.
    """

    client: str
    steps: Callable[[Model, str], list[Step]]
    results: tuple[str, ...]
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    project: bool = False


def claude(model: Model, path: str) -> list[Step]:
    return [
        model.call("LSP", operation="goToDefinition", filePath=path, **PLACE),
        model.call("LSP", operation="incomingCalls", filePath=path, **PLACE),
        model.call("Read", file_path=path),
        model.call("Edit", file_path=path, old_string='"b"', new_string="3"),
        # Diagnostics come with a later request.
        *(model.call("Bash", command="sleep 2") for _ in range(2)),
    ]


def copilot(model: Model, path: str) -> list[Step]:
    return [
        model.call("lsp", operation="goToDefinition", file=path, **PLACE),
        model.call("lsp", operation="rename", file=path, newName="place", **PLACE),
    ]


def opencode(model: Model, path: str) -> list[Step]:
    return [
        model.call("lsp", operation="goToDefinition", filePath=path, **PLACE),
        model.call("read", filePath=path),
        model.call("edit", filePath=path, oldString='"b"', newString="3"),
    ]


def qwen(model: Model, path: str) -> list[Step]:
    asked = {"operation": "goToDefinition", "filePath": path, **PLACE}
    return [
        model.call("tool_search", query="select:lsp"),
        model.call("tool_call", name="lsp", arguments=asked),
        model.call("tool_call", name="lsp", arguments={"operation": "diagnostics", "filePath": path}),
    ]


WRONG = "is not assignable to"
CASES = {
    "claude": Case(
        "claude-code",
        claude,
        ("Defined in shelf.py:2:9", "fill (Function)", WRONG),
        args=("--plugin-dir", "%s", "--allowedTools", "Edit", "Bash"),
    ),
    "copilot": Case("copilot-cli", copilot, ("shelf.py:2:9", "use the tool nvim_symbol_rename")),
    "opencode": Case(
        "opencode", opencode, ("shelf.py", WRONG), env=(("OPENCODE_EXPERIMENTAL_LSP_TOOL", "true"),)
    ),
    "qwen": Case(
        "qwen-code", qwen, ("shelf.py:2:9", "iagnostics f"), args=("--experimental-lsp",), project=True
    ),
}


async def connect(nvim: Nvim, project: Path, *words: str) -> dict[str, str]:
    """Runs `mcp-tools connect`; returns its result."""
    connect = (*PROGRAM, "connect", *words, "--lsp", "--yes", "--json")
    output = await agents.output_of(*connect, cwd=project, env=nvim.home.environment())
    return json.loads(output)


def installed(directory: Path) -> str:
    """PATH with the command `mcp-tools`."""
    script = directory / "mcp-tools"
    script.write_text(f'#!/bin/sh\nexec {" ".join(PROGRAM)} "$@"\n')
    script.chmod(0o700)
    return f"{directory}{os.pathsep}{os.environ['PATH']}"


@contextlib.asynccontextmanager
async def staged(spawn_nvim: Spawn) -> AsyncIterator[Nvim]:
    """An editor that has a language server for Python, in a project."""
    agents.install()
    nvim = (await support.start(spawn_nvim, init=lsp.ATTACH)).nvim
    project = nvim.home.make("cwd")
    (project / ".git").mkdir(exist_ok=True)
    (project / "shelf.py").write_text(SHELF)
    (project / "user.py").write_text(USER)
    await nvim.lua("vim.cmd.edit('shelf.py')")
    await nvim.wait_for("return #vim.lsp.get_clients() == 1")
    yield nvim
    assert await nvim.lua("return #vim.lsp.get_clients()") == 1
    assert await nvim.lua("return #vim.fn.getbufinfo({ buflisted = 1 })") == 1
    await nvim.lua(lsp.STOP)


async def ask(nvim: Nvim, name: str) -> None:
    """Connects the agent and runs the steps of its model."""
    case, home = CASES[name], nvim.home
    project = home.make("cwd")
    async with models.serving() as model:
        place = agents.Workspace(home, project, model)
        argv, env = agents.AGENTS[name](home, project, model)
        connected = await connect(nvim, project, case.client, *(("--project",) if case.project else ()))
        file = Path(connected["lsp"])
        assert '".py"' in file.read_text()
        args = [word.replace("%s", str(file.parent)) for word in case.args]
        assert all(word in connected["advice"] for word in args[:2])
        if name == "opencode":
            file = project / "opencode.json"
            file.write_text(json.dumps(json.loads(file.read_text()) | {"permission": {"*": "allow"}}))
        env |= dict(case.env) | {"PATH": installed(home.make("bin"))}
        model.plan(*case.steps(model, str(project / "user.py")), Step(text="and that was all"))
        output = await agents.answer(name, place, "look", ([*argv, *args], env), timeout=PATIENCE)
        requests = "\n".join(model.requests)
    for text in case.results:
        assert text in requests, output


@pytest.mark.parametrize("name", CASES)
async def test_an_agent_is_answered_by_the_editors_server(name: str, spawn_nvim: Spawn) -> None:
    async with staged(spawn_nvim) as nvim:
        await ask(nvim, name)
