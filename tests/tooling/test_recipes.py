"""The recipes of the help run unchanged in a real Neovim."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from mcp_tools_nvim.client_config.known import CLIENTS
from tests.support import processes
from tests.support.nvim import ROOT, Nvim, Spawn

API, CLIENT_HELP = ((ROOT / "doc" / f"mcp-tools-{name}.txt").read_text() for name in ("api", "clients"))
SETUP = """
require('mcp-tools').setup({ approval = { tools = { make_check = 'allow', bookmarks_add = 'allow' } } })
"""
PNG = b"\x89PNG\r\n\x1a\n\xff\x00"

BOOKMARKS = """
package.loaded.bookmarks = {
  list = {},
  add = function(path, line)
    if line > 100 then error('there is no such line', 0) end
    table.insert(package.loaded.bookmarks.list, { path = path, line = line })
  end,
  all = function() return package.loaded.bookmarks.list end,
}
"""


def recipes() -> dict[str, str]:
    """Returns the Lua code of each recipe, which is the first block below its tag."""
    found = re.findall(r"\*mcp-tools-recipe-(\w+)\*.*?>lua\n(.*?)^<", API, re.MULTILINE | re.DOTALL)
    return {name: re.sub(r"^    ", "", code, flags=re.MULTILINE) for name, code in found}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Returns a git project."""
    directory = tmp_path / "project"
    directory.mkdir()
    git = ["git", "-C", str(directory), "-c", "user.name=a", "-c", "user.email=a@b"]
    processes.run([*git, "init", "--quiet"], check=True)
    (directory / "a.txt").write_text("short\nthe longest one\nmiddle\n")
    processes.run([*git, "add", "a.txt"], check=True)
    processes.run([*git, "commit", "--quiet", "--message", "First steps"], check=True)
    (directory / "Makefile").write_text("check:\n\t@echo one\n\t@echo two\n\t@exit 3\n")
    plots = directory / "plots"
    plots.mkdir()
    (plots / "new.png").write_bytes(PNG)
    return directory


@pytest.fixture
async def nvim(spawn_nvim: Spawn, project: Path, tmp_path: Path) -> Nvim:
    """Returns an editor in that project, with every recipe in its configuration."""
    ext = tmp_path / "plugin" / "lua" / "mcp-tools" / "ext"
    ext.mkdir(parents=True)
    (ext / "bookmarks.lua").write_text(recipes()["plugin"])
    code = [code for name, code in recipes().items() if name != "plugin"]
    path = f"vim.opt.runtimepath:append([[{tmp_path / 'plugin'}]])"
    # Each in its own scope, like files of a configuration.
    init = "\n".join([SETUP, path, BOOKMARKS, *(f"do\n{block}\nend" for block in code)])
    return await spawn_nvim(args=[str(project / "a.txt")], cwd=project, init_lua=init)


async def test_the_recipes_of_tools_work(nvim: Nvim) -> None:
    assert await nvim.call_tool("word_count", text="one two") == {"words": 2}
    assert re.fullmatch(r"[0-9a-f]{7,} First steps\n", await nvim.call_tool("recent_commits", count=3))
    assert (await nvim.call_tool("recent_commits", count=0))["code"] == "validation_error"
    assert await nvim.call_tool("make_check") == {"code": 2, "lines": ["one", "two"]}
    assert await nvim.lua("return Reported[#Reported]") == "two"
    await nvim.call_tool("newest_plot")
    blocks = await nvim.lua("return { Called[1][1].text, Called[1][2].mimeType, #Called[1][2].bytes }")
    assert blocks == ["new.png", "image/png", len(PNG)]


async def test_the_recipe_of_approval_asks_only_when_text_would_be_lost(nvim: Nvim) -> None:
    await nvim.lua("vim.cmd('edit b.txt | edit c.txt')")
    assert await nvim.call_tool("close_others") == {"closed": 2, "kept": []}

    await nvim.attach_ui()
    await nvim.lua(
        "vim.cmd('edit d.txt') vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'new' })"
        " vim.cmd('hide edit c.txt')"
        " vim.api.nvim_create_autocmd('User', { pattern = 'McpToolsApproval', callback = function(args)"
        "   if args.data.state == 'shown' then Asked = args.data.reason"
        "     vim.defer_fn(function() require('mcp-tools.approval').answer(args.data.id, 'once') end, 600)"
        "   end end })"
    )
    assert (await nvim.call_tool("close_others"))["closed"] == 0
    assert await nvim.lua("return Asked") is None
    assert (await nvim.call_tool("close_others", force=True))["closed"] == 1
    assert await nvim.lua("return Asked") == "1 buffers have unsaved changes"


async def test_the_recipe_of_a_plugin_is_found_and_works(nvim: Nvim) -> None:
    await nvim.lua("probe.core.get()")
    await nvim.wait_for("return require('mcp-tools').list_tools().bookmarks_list ~= nil")
    assert await nvim.call_tool("bookmarks_add", path="a.txt", line=2) == "set"
    assert (await nvim.call_tool("bookmarks_list"))[0]["line"] == 2
    refused = await nvim.call_tool("bookmarks_add", path="a.txt", line=101)
    assert (refused["code"], refused["message"]) == ("tool_error", "there is no such line")


READ = """
local kind, name = ...
Outcome = nil
probe.core.for_call(kind, name).executor:execute(name, vim.empty_dict(), {
  kind = kind, host = 'test', listener = { done = function(_, call) Outcome = call.outcome end },
})
"""


async def ask(nvim: Nvim, kind: str, name: str) -> Any:
    """Reads a resource, or gets a prompt."""
    await nvim.lua(READ, kind, name)
    return await nvim.wait_for(
        "local done = Outcome"
        " return done and { done.error or vim.NIL, done.payload and vim.inspect(done.payload) or '' }"
    )


async def test_the_recipes_of_a_resource_and_a_prompt_work(nvim: Nvim, project: Path) -> None:
    await nvim.lua("vim.cmd('Note look at a.txt')")
    error, text = await ask(nvim, "resource", "notes://mine")
    assert error is None
    assert "- look at a.txt" in text

    error, _ = await ask(nvim, "prompt", "write_commit")
    assert error["message"] == "nothing is staged"
    (project / "a.txt").write_text("changed\n")
    processes.run(["git", "-C", str(project), "add", "a.txt"], check=True)
    error, text = await ask(nvim, "prompt", "write_commit")
    assert error is None
    assert "+changed" in text


def test_every_recipe_is_tested_and_every_client_has_a_command() -> None:
    tested = {"sync", "async", "streaming", "approval", "image", "resource", "prompt", "plugin"}
    assert set(recipes()) == tested
    named = set(re.findall(r":McpTools connect ([\w-]+)$", CLIENT_HELP, re.MULTILINE))
    assert named == CLIENTS.keys()
