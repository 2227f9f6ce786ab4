"""The agents themselves run our hooks: what they print reaches the model, a scripted one on loopback."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support import agents, processes
from tests.support import bridge as support
from tests.support import model as models
from tests.support.model import Model, Step
from tests.support.nvim import ROOT, Home, Nvim

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]  # the first one installs the agents

LSP = ROOT / "tests" / "e2e" / "hooks.lua"
PROGRAM = [sys.executable, str(ROOT / "bridge" / "mcp_tools_nvim")]
OPEN, NEW = "- open: a.txt", "- new: a.txt:2:1 error: bad: BAD line"


OLD, BAD, FIRST, OTHER, LAST = "line two", "BAD line", "line one", "line 1", "line ONE"


def claude(model: Model, path: Path) -> list[Step]:
    def edit(old: str, new: str) -> Step:
        return model.call("Edit", file_path=str(path), old_string=old, new_string=new)

    return [model.call("Read", file_path=str(path)), edit(OLD, BAD), edit(FIRST, OTHER), edit(OTHER, LAST)]


def gemini(model: Model, path: Path) -> list[Step]:
    def edit(old: str, new: str) -> Step:
        return model.call("replace", instruction="x", file_path=str(path), old_string=old, new_string=new)

    return [edit(OLD, BAD), edit(FIRST, OTHER), edit(OTHER, LAST)]


def qwen(model: Model, path: Path) -> list[Step]:
    def edit(old: str, new: str) -> Step:
        return model.call("edit", file_path=str(path), old_string=old, new_string=new)

    return [
        model.call("read_file", file_path=str(path)),
        edit(OLD, BAD),
        edit(FIRST, OTHER),
        edit(OTHER, LAST),
    ]


def copilot(model: Model, path: Path) -> list[Step]:
    def edit(old: str, new: str) -> Step:
        return model.call("edit", path=str(path), old_str=old, new_str=new)

    return [edit(OLD, BAD), edit(FIRST, OTHER), edit(OTHER, LAST)]


def opencode(model: Model, path: Path) -> list[Step]:
    def edit(old: str, new: str) -> Step:
        return model.call("edit", filePath=str(path), oldString=old, newString=new)

    return [model.call("read", filePath=str(path)), edit(OLD, BAD), edit(FIRST, OTHER), edit(OTHER, LAST)]


@dataclass(frozen=True)
class Case:
    """One agent: its name for `connect`, what its model does, arguments before the prompt.

    It edits more than once: on a busy machine the diagnostics of an edit come with the next one.
    """

    client: str
    edit: Callable[[Model, Path], list[Step]]
    words: tuple[str, ...]


CASES = {
    "claude": Case("claude-code", claude, ("--permission-mode", "acceptEdits", "-p")),
    "gemini": Case("gemini-cli", gemini, agents.ALONE["gemini"]),
    "qwen": Case("qwen-code", qwen, agents.ALONE["qwen"]),
    "copilot": Case("copilot-cli", copilot, agents.ALONE["copilot"]),
    "opencode": Case("opencode", opencode, agents.ALONE["opencode"]),
}


async def output_of(*words: str, cwd: Path, env: dict[str, str]) -> str:
    process = await processes.start(*words, cwd=cwd, env=env, stdout=-1, stderr=-2)
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
    return output.decode()


@pytest.mark.parametrize("name", CASES)
async def test_context_and_diagnostics_reach_the_model(
    name: str, spawn_nvim: Callable[..., Awaitable[Nvim]], home: Home
) -> None:
    """With the prompt what is open, after the edit what is newly wrong; without an editor nothing at all."""
    agents.install()
    case, project = CASES[name], home.make("project")
    (project / ".git").mkdir()
    file = project / "a.txt"
    file.write_text("line one\nline two\n")
    bridge = await support.start(spawn_nvim, cwd=project, args=["a.txt"], init=f"dofile([[{LSP}]])")
    await bridge.nvim.wait_for("return #vim.lsp.get_clients() == 1")
    async with models.serving() as model:
        argv, own = agents.AGENTS[name](home, project, model)
        if name == "opencode":
            own["npm_config_fetch_retries"] = "0"  # with a plugin it looks for a package, which is not there
            config = json.loads((project / "opencode.json").read_text())
            agents.write(project / "opencode.json", config | {"permission": {"*": "allow"}})
        env = {key: value for key, value in (agents.environment(home) | own).items() if value}
        connect = [*PROGRAM, "connect", case.client, "--hooks", "--yes", "--json"]
        written: dict[str, Any] = json.loads(await output_of(*connect, cwd=project, env=home.environment()))
        assert written["written"]
        assert bridge.token not in Path(written["hooks"]).read_text()
        model.plan(*case.edit(model, file), Step(text="done"))
        said = await output_of(*argv, *case.words, "GO: edit", cwd=project, env=env)
        assert file.read_text() == "line ONE\nBAD line\n", said
        asked = [json.dumps(json.loads(request), ensure_ascii=False) for request in model.requests]
        assert OPEN in asked[-1]
        assert "untrusted data" in asked[-1]
        assert NEW in asked[-1]
        assert NEW not in asked[0]

        await bridge.nvim.request("nvim_command", "McpTools stop")
        await bridge.nvim.wait_for("return mcp_tools.status().state == 'stopped'")
        model.plan(Step(text="done"))
        said = await output_of(*argv, *case.words, "GO: again", cwd=project, env=env)
        assert not re.search(r"(?i)hooks? (failed|error|timed)", said)
        assert not any(OPEN in request for request in model.requests)
        disconnect = [*PROGRAM, "disconnect", case.client, "--yes", "--json"]
        await output_of(*disconnect, cwd=project, env=home.environment())
        path = Path(written["hooks"])
        assert not path.exists() or "hook" not in path.read_text()
