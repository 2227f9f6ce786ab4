"""LSP clients of agents ask the editor's language servers, configured by what `mcp-tools connect` writes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support import agents, lsp, processes
from tests.support import bridge as support
from tests.support import model as models
from tests.support.model import Model, Step
from tests.support.nvim import ROOT, Nvim

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]  # the first one installs the agents

Spawn = Callable[..., Awaitable[Nvim]]

PROGRAM = [sys.executable, str(ROOT / "bridge" / "mcp_tools_nvim")]
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
        steps: what its model does: it looks for a definition, then some more.
        told: what its model hears of that.
        args: what the advice of `connect` says; %s is the folder of the file.
        env: the same.
        project: it is connected by files of the project.
    """

    client: str
    steps: Callable[[Model, str], list[Step]]
    told: tuple[str, ...]
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    project: bool = False


def claude(model: Model, path: str) -> list[Step]:
    return [
        model.call("LSP", operation="goToDefinition", filePath=path, **PLACE),
        model.call("LSP", operation="incomingCalls", filePath=path, **PLACE),
        model.call("Read", file_path=path),
        model.call("Edit", file_path=path, old_string='"b"', new_string="3"),
        # Diagnostics come with a later request, whenever they are there.
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
    """`mcp-tools connect`, which is on PATH as a project's file names it."""
    process = await processes.start(
        *PROGRAM,
        "connect",
        *words,
        *("--lsp", "--yes", "--json"),
        cwd=project,
        env=nvim.home.environment(),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    told: dict[str, str] = json.loads(output)
    return told


def installed(folder: Path) -> str:
    """PATH with the command `mcp-tools`."""
    script = folder / "mcp-tools"
    script.write_text(f'#!/bin/sh\nexec {" ".join(PROGRAM)} "$@"\n')
    script.chmod(0o700)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


@contextlib.asynccontextmanager
async def staged(spawn_nvim: Spawn) -> AsyncIterator[Nvim]:
    """An editor that has a language server for Python, in a project."""
    hindrance = agents.install()
    if hindrance:
        pytest.skip(hindrance)
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
    """The agent is connected, and its model does its steps."""
    case, home = CASES[name], nvim.home
    project = home.make("cwd")
    async with models.serving() as model:
        place = agents.Workspace(home, project, model)
        argv, env = agents.AGENTS[name](home, project, model)
        told = await connect(nvim, project, case.client, *(("--project",) if case.project else ()))
        file = Path(told["lsp"])
        assert '".py"' in file.read_text()
        args = [word.replace("%s", str(file.parent)) for word in case.args]
        assert all(word in told["advice"] for word in args[:2])
        if name == "opencode":
            file = project / "opencode.json"
            file.write_text(json.dumps(json.loads(file.read_text()) | {"permission": {"*": "allow"}}))
        env |= dict(case.env) | {"PATH": installed(home.make("bin"))}
        model.plan(*case.steps(model, str(project / "user.py")), Step(text="and that was all"))
        said = await agents.answer(name, place, "look", ([*argv, *args], env), timeout=PATIENCE)
        heard = "\n".join(model.requests)
    for text in case.told:
        assert text in heard, said


@pytest.mark.parametrize("name", CASES)
async def test_an_agent(name: str, spawn_nvim: Spawn) -> None:
    """It is answered by the editor, which shows no file for it and starts one server."""
    async with staged(spawn_nvim) as nvim:
        await ask(nvim, name)


def relays(home: Path) -> dict[int, int]:
    """The processes `mcp-tools lsp` of an editor's user, with their memory in kB."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            if b"lsp" in words and str(home).encode() in (process / "environ").read_bytes():
                status = (process / "status").read_text().splitlines()
                found[int(process.name)] = int(next(x for x in status if x.startswith("VmRSS:")).split()[1])
    return found


async def test_three_agents_at_once(spawn_nvim: Spawn) -> None:
    """They share one server; each has a process of at most 30 MB."""
    seen: dict[int, int] = {}

    async def watch(home: Path) -> None:
        while True:
            for pid, size in relays(home).items():
                seen[pid] = max(size, seen.get(pid, 0))
            await asyncio.sleep(0.1)

    async with staged(spawn_nvim) as nvim:
        watching = asyncio.create_task(watch(nvim.home.path))
        await asyncio.gather(*(ask(nvim, name) for name in ("copilot", "qwen", "claude")))
        watching.cancel()
    print(f"memory of the relays: {seen}")
    assert len(seen) >= 3
    assert max(seen.values()) < 30_000
