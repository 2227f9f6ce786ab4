"""How reviews look at a terminal of 80×24: text, highlight groups and colors.

`make captures` stores the screens in `review/`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from tests.support import terminal
from tests.support.captures import Captures
from tests.support.nvim import Home
from tests.support.terminal import Terminal

pytestmark = [pytest.mark.every_nvim, pytest.mark.slow, terminal.needed]

INIT = """
vim.opt.swapfile = false
vim.opt.ruler = false
vim.opt.background = 'dark'
_G.mcp_tools = require('mcp-tools')
mcp_tools.setup({ tools = { 'buffer', 'file' }, bridge = { autostart = false } })
probe.core.get() -- as the first call does
_G.ended = {}
-- Proposes changes; each new text is made from that of the file.
function _G.propose(client, title, files, more)
  local list = {}
  for name, change in pairs(files) do
    local path = vim.fs.joinpath(vim.uv.cwd(), name)
    local was = vim.uv.fs_stat(path) and table.concat(vim.fn.readfile(path), '\\n') .. '\\n' or ''
    table.insert(list, { path = path, text = change(was) })
  end
  table.sort(list, function(a, b) return a.path < b.path end)
  probe.review.open(vim.tbl_extend('force', {
    client = { name = client }, key = title, title = title, files = list,
    on_end = function(outcome) table.insert(ended, outcome.state) end,
  }, more or {}))
end
"""

CODE = """local M = {}

--- Says hello.
function M.greet(name)
  return 'Hello ' .. name
end

function M.unused()
  return nil
end

M.is_kept = true

return M
"""

GREET = """function(was)
  return (was:gsub("'Hello ' .. name", "('Hello %%s'):format(name or 'you')  -- nobody is named", 1)
    :gsub('  return nil\\n', '', 1):gsub('return M\\n$', 'M.is_ready = true\\n\\nreturn M\\n'))
end"""

CLAUDE = f"""
propose('claude', 'greet whoever comes', {{
  ['greet.lua'] = {GREET},
  ['notes.txt'] = function(was) return was:gsub('two', '2') end,
  ['sub/made.lua'] = function() return 'return {{\\n  "new",\\n}}\\n' end,
}})
"""
GEMINI = "propose('gemini', 'another title', { ['notes.txt'] = function(was) return was .. 'four\\n' end })"

Keep = Callable[[str], Awaitable[None]]


@pytest.fixture
async def screen(nvim_program: Path, home: Home) -> AsyncIterator[Terminal]:
    project = home.make("project")
    (project / ".git").mkdir()
    (project / "greet.lua").write_text(CODE)
    (project / "notes.txt").write_text("one\ntwo\nthree\n")
    options = {"arguments": ("greet.lua",), "cwd": project}
    async with terminal.opened(nvim_program, home, init_lua=INIT, **options) as opened:
        yield opened
        assert "Press ENTER" not in await opened.screen()


@pytest.fixture
def keep(screen: Terminal, captures: Captures) -> Keep:
    """Compares the screen with a stored one."""
    return lambda name: captures.shows(screen, f"review/{name}")


async def test_an_inline_review_of_several_files_and_agents(screen: Terminal, keep: Keep) -> None:
    await screen.nvim.lua(CLAUDE)
    await screen.shows("greet whoever comes")
    await screen.nvim.lua(GEMINI)
    await screen.shows("review 1 of 2")
    await keep("waiting")
    await screen.command("McpTools review")
    await screen.shows("y accept")
    await keep("inside")
    await screen.type("?")
    await keep("keys")
    await screen.type("qyN")
    await screen.shows("Reason for the assistant")
    await screen.enter("it is used")
    await screen.shows("1 of 3 hunks left")
    await keep("decided-in-part")
    await screen.type("e")
    await screen.shows("Edit this hunk")
    await keep("hunk-editor")
    await screen.command("q!")
    await screen.shows("1 of 3 hunks left", "y accept")
    await screen.type("y")
    await screen.shows("0 of 3 hunks left", "two")
    await screen.type("y")
    await screen.shows('"new"')
    await keep("new-file")
    await screen.type("y")
    await screen.shows("gemini: another title")
    assert await screen.nvim.lua("return ended") == ["accepted"]


async def test_a_review_side_by_side(screen: Terminal, keep: Keep) -> None:
    await screen.nvim.lua("mcp_tools.setup({ review = { layout = 'split' } })")
    await screen.nvim.lua(f"propose('claude', 'greet whoever comes', {{ ['greet.lua'] = {GREET} }})")
    await screen.shows(":McpTools review")
    await screen.command("McpTools review")
    await screen.shows("y accept")
    await keep("split")
    await screen.type("yn")
    await screen.shows("1 of 3 hunks left")
    await keep("split-decided-in-part")


async def test_a_review_of_changes_that_were_already_made(screen: Terminal, keep: Keep) -> None:
    await screen.nvim.lua(
        f"propose('claude', 'made before', {{ ['greet.lua'] = {GREET} }}, {{ applied = true }})"
    )
    await screen.shows(":McpTools review")
    await screen.command("McpTools review")
    await screen.shows("y keep")
    await keep("made-before")
    await screen.nvim.request("nvim_buf_set_lines", 0, 4, 5, False, ["  return name -- mine"])
    await screen.shows("changed meanwhile")
    await keep("changed-meanwhile")
