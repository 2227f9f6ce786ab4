"""Real agents run our hooks, and their output reaches the model, a scripted one on loopback."""

from __future__ import annotations

import json
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support import agents
from tests.support import bridge as support
from tests.support import model as models
from tests.support.model import Model, Step
from tests.support.nvim import ROOT, Home, Spawn

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]  # the first one installs the agents

LSP = ROOT / "tests" / "e2e" / "hooks.lua"
PACKAGE = ROOT / "bridge" / "mcp_tools_nvim"
OPEN, NEW = "- open: a.txt", "- new: a.txt:2:1 error: bad: BAD line"
EDITS = (("line two", "BAD line"), ("line one", "line 1"), ("line 1", "line ONE"))
"""More than one: on a busy machine the diagnostics of an edit come with the next one."""


@dataclass(frozen=True)
class Case:
    """One agent: its name for `connect`, its tools to read and edit with their arguments."""

    client: str
    read: str
    edit: str
    path: str = "file_path"
    old: str = "old_string"
    new: str = "new_string"
    more: tuple[tuple[str, str], ...] = ()

    def steps(self, model: Model, path: Path) -> list[Step]:
        """Reads the file, if the agent needs that, and edits it."""
        named = {self.path: str(path)}
        reads = [model.call(self.read, **named)] if self.read else []
        if self.edit == "apply_patch":
            patch = "*** Begin Patch\n*** Update File: {}\n@@\n-{}\n+{}\n*** End Patch\n"
            return [model.call(self.edit, input=patch.format(path, *edit)) for edit in EDITS]
        edits = ({self.old: old, self.new: new} for old, new in EDITS)
        return [*reads, *(model.call(self.edit, **named, **edit, **dict(self.more)) for edit in edits)]


CASES = {
    "claude": Case("claude-code", "Read", "Edit"),
    "codex": Case("codex", "", "apply_patch"),
    "gemini": Case("gemini-cli", "", "replace", more=(("instruction", "x"),)),
    "qwen": Case("qwen-code", "read_file", "edit"),
    "copilot": Case("copilot-cli", "", "edit", "path", "old_str", "new_str"),
    "opencode": Case("opencode", "read", "edit", "filePath", "oldString", "newString"),
}
PATCHES = ("--dangerously-bypass-hook-trust", "--model", "gpt-5.5")  # has apply_patch
OPTIONS = agents.ALONE | {"claude": ("--permission-mode", "acceptEdits", "-p")}
OPTIONS["codex"] = (*agents.ALONE["codex"], *PATCHES)
"""Options before the prompt."""


@pytest.mark.parametrize("name", CASES)
async def test_context_and_diagnostics_reach_the_model(name: str, spawn_nvim: Spawn, home: Home) -> None:
    """Open files with the prompt, new diagnostics after an edit, nothing without an editor or the plugin."""
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
            own["npm_config_fetch_retries"] = "0"  # with a plugin it looks for a package
            config = json.loads((project / "opencode.json").read_text())
            agents.write(project / "opencode.json", config | {"permission": {"*": "allow"}})
        env = {key: value for key, value in (agents.environment(home) | own).items() if value}
        plugin = shutil.copytree(PACKAGE, home.make("a plugin") / "mcp_tools_nvim")
        connect = [sys.executable, str(plugin), "connect", case.client, "--hooks", "--yes", "--json"]
        written = json.loads(await agents.output_of(*connect, cwd=project, env=home.environment()))
        assert written["written"]
        assert bridge.token not in Path(written["hooks"]).read_text()
        model.plan(*case.steps(model, file), Step(text="done"))
        output = await agents.output_of(*argv, *OPTIONS[name], "GO: edit", cwd=project, env=env)
        assert file.read_text() == "line ONE\nBAD line\n", output
        requests = [json.dumps(json.loads(request), ensure_ascii=False) for request in model.requests]
        assert [part for part in (OPEN, "untrusted data", NEW) if part not in requests[-1]] == [], output
        assert NEW not in requests[0]

        await bridge.nvim.request("nvim_command", "McpTools stop")
        await bridge.nvim.wait_for("return mcp_tools.status().state == 'stopped'")
        for prompt in ("GO: without an editor", "GO: without the plugin"):
            model.plan(Step(text="done"))
            output = await agents.output_of(*argv, *OPTIONS[name], prompt, cwd=project, env=env)
            assert not re.search(r"(?i)hooks? (failed|error|timed)|blocked", output)
            assert any(prompt in request for request in model.requests), output
            assert not any(OPEN in request for request in model.requests)
            shutil.rmtree(plugin, ignore_errors=True)
        disconnect = [sys.executable, str(PACKAGE), "disconnect", case.client, "--yes", "--json"]
        await agents.output_of(*disconnect, cwd=project, env=home.environment())
        path = Path(written["hooks"])
        assert not path.exists() or "hook" not in path.read_text()
