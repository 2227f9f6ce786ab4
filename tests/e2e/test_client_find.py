"""Which editor a Python program calls when it does not name one."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from mcp_tools_nvim.api import call_tool
from tests.support.bridge import Start
from tests.support.nvim import ROOT, Spawn
from tests.support.programs import editor, output_of, script


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A program that was started outside of any editor."""
    for name in ("NVIM", "NVIM_LISTEN_ADDRESS"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


async def test_a_program_started_by_neovim_calls_that_editor(spawn_nvim: Spawn) -> None:
    nvim = await editor(spawn_nvim, env={"PYTHONPATH": str(ROOT / "bridge")})
    code = "from mcp_tools_nvim.api import call_tool; call_tool('mark')"
    await nvim.lua("vim.fn.jobstart({ ... })", sys.executable, "-c", code)
    await nvim.wait_for("return Seen.late == 1", timeout=10_000)


HELP = re.findall(
    r">python\n(.*?)^<", (ROOT / "doc" / "mcp-tools-api.txt").read_text(), re.MULTILINE | re.DOTALL
)
README = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
EXAMPLES = [textwrap.dedent(code) for code in HELP + README if "mcp_tools_nvim.api" in code]


async def test_the_examples_of_the_documentation_work(spawn_nvim: Spawn) -> None:
    nvim = await editor(spawn_nvim, "{ tools = { 'file' } }")
    nvim.home.make("cwd").joinpath("README.md").write_text("the first line")
    await nvim.lua(
        "require('mcp-tools').register({ name = 'cursor', description = 'cursor', needs_approval = false,"
        " execute = function(ctx) ctx({ text = 'the first line' }) end })"
    )
    assert EXAMPLES
    for example in EXAMPLES:
        process = await script(example, nvim, NVIM=str(nvim.socket))
        assert "the first line" in await output_of(process)


async def test_the_precedence_of_variables(spawn_nvim: Spawn, outside: pytest.MonkeyPatch) -> None:
    nvim = await editor(spawn_nvim)
    outside.setenv("NVIM_LISTEN_ADDRESS", str(nvim.socket))
    assert call_tool("echo", value="x")["ok"]
    outside.setenv("NVIM", "/nowhere")
    result = call_tool("echo", value="x")
    assert result["error"]["code"] == "editor_gone"
    assert "$NVIM" in result["error"]["message"]
    assert call_tool("echo", value="x", socket=str(nvim.socket))["ok"]


@pytest.mark.slow
async def test_the_editor_of_the_project_is_found_from_a_subdirectory(
    start_bridge: Start, spawn_nvim: Spawn, outside: pytest.MonkeyPatch
) -> None:
    bridge = await start_bridge()
    nvim = bridge.nvim
    for name, value in nvim.home.environment().items():
        outside.setenv(name, value)
    below = nvim.home.make("cwd") / "src" / "deep"
    below.mkdir(parents=True)
    outside.chdir(below)
    assert call_tool("nowhere")["error"]["code"] == "unknown_tool"
    outside.chdir(nvim.home.make("home"))
    result = call_tool("nowhere")
    assert result["error"]["code"] == "editor_gone"
    assert str(nvim.socket) in result["error"]["message"]


@pytest.mark.slow
async def test_a_deleted_working_directory_is_reported(files: Files, spawn_nvim: Spawn) -> None:
    nvim = await editor(spawn_nvim)
    gone = "import os; os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone'); print(CALL['error'])"
    process = await script(gone.replace("CALL", "call_tool('echo')"), nvim)
    assert "working directory does not exist" in await output_of(process)
    process = await script(
        gone.replace("CALL['error']", "call_tool('echo', value=1)['ok']"), nvim, NVIM=str(nvim.socket)
    )
    assert await output_of(process) == "True"


class Files:
    """Instance files of editors that do not run."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(mode=0o700, parents=True)

    def add(self, name: str, root: Path, socket: Path, pid: int | None = None, focused: int = 0) -> None:
        values: dict[str, Any] = {"pid": pid or os.getpid(), "port": 1, "token": "t", "focused_at": focused}
        path = self._directory / f"{name}.json"
        path.write_text(json.dumps(values | {"root": str(root), "socket": str(socket)}))
        path.chmod(0o600)


@pytest.fixture
async def files(tmp_path: Path, outside: pytest.MonkeyPatch) -> Files:
    outside.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    tmp_path.chmod(0o700)
    return Files(tmp_path / "mcp-tools")


async def test_the_nearest_project_and_the_last_focused_editor_are_chosen(
    files: Files, spawn_nvim: Spawn, outside: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    nvim = await editor(spawn_nvim)
    outer, inner = tmp_path / "outer", tmp_path / "outer" / "inner"
    inner.mkdir(parents=True)
    (tmp_path / "link").symlink_to(inner)
    files.add("1", outer, Path("/nowhere/outer"))
    files.add("2", inner, nvim.socket)
    files.add("3", tmp_path / "outer" / "in", Path("/nowhere/other"))
    files.add("4", inner, Path("/nowhere/dead"), pid=2**22 + 5)
    for place in (inner, tmp_path / "link"):
        outside.chdir(place)
        assert call_tool("echo", value="x")["text"] == "x"
    files.add("5", inner, Path("/nowhere/second"), focused=5)
    error = call_tool("echo", value="x")["error"]
    assert error["code"] == "editor_gone"
    assert "/nowhere/second" in error["message"]
    files.add("2", inner, nvim.socket, focused=6)
    assert call_tool("echo", value="x")["text"] == "x"


async def test_an_editor_without_a_runtime_directory_is_found(
    spawn_nvim: Spawn, outside: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    nvim = await editor(spawn_nvim)
    outside.delenv("XDG_RUNTIME_DIR")
    outside.setenv("XDG_STATE_HOME", str(tmp_path))
    outside.setenv("NVIM_APPNAME", "other")
    place = await nvim.lua(
        "vim.env.XDG_RUNTIME_DIR, vim.env.XDG_STATE_HOME, vim.env.NVIM_APPNAME = nil, ...\n"
        "return probe.instances.dir()",
        str(tmp_path),
        "other",
    )
    project = tmp_path / "project"
    project.mkdir()
    Files(Path(place)).add("1", project, nvim.socket)
    outside.chdir(project)
    assert call_tool("echo", value="x")["text"] == "x"
    outside.setenv("XDG_RUNTIME_DIR", str(nvim.home.make("run")))
    assert call_tool("echo", value="x")["text"] == "x"


async def test_without_an_editor_a_call_is_an_error_value(files: Files, spawn_nvim: Spawn) -> None:
    nvim = await editor(spawn_nvim)
    process = await script("print(call_tool('echo', value=1))", nvim)
    output = await asyncio.wait_for(output_of(process), 20)
    assert "'ok': False" in output
    assert "no Neovim" in output
