"""`:McpTools call` at a terminal: results, errors and questions; `q` returns to the window of the user."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from tests.support import terminal
from tests.support.nvim import Home
from tests.support.terminal import Terminal

pytestmark = terminal.needed

TOOLS = """
local content = mcp_tools.content
local function tool(name, execute, fields)
  mcp_tools.register(vim.tbl_extend('force', {
    name = name, description = 'x', annotations = { read_only = true }, execute = execute,
  }, fields or {}))
end
tool('where', function(ctx) ctx(vim.fs.basename(vim.api.nvim_buf_get_name(0))) end)
tool('poem', function(ctx) ctx('roses are red\\nviolets are blue') end)
tool('data', function(ctx) ctx({ b = { 1, 2 }, a = 'x' }) end)
tool('mixed', function(ctx) ctx({ content.text('a picture:'), content.image('12345', 'image/png') }) end)
tool('steps', function(ctx)
  ctx:progress(1, 2, 'half of it')
  ctx:log('info', { seen = 1 })
  _G.finish = function() ctx('the end') end
end)
tool('throws', function() error('on purpose') end)
tool('form', function(ctx, args)
  local kinds = { type = 'string', enum = { 'a', 'b' }, enumNames = { 'Ay', 'Bee' }, title = 'Which kind' }
  local schema = { type = 'object', required = { 'name', 'kind' }, properties = {
    name = { type = 'string', title = 'Your name' }, kind = kinds,
    size = { type = 'integer', minimum = 3 }, sure = { type = 'boolean' },
  } }
  ctx:elicit('Tell me who you are', schema, function(answer, err) ctx(answer, err) end)
end)
"""

Open = Callable[..., AbstractAsyncContextManager[Terminal]]


@pytest.fixture
async def screen(open_terminal: Open, home: Home) -> AsyncIterator[Terminal]:
    """A terminal with a file open, the cursor in its second line, and tools to try."""
    file = home.make("cwd") / "notes.txt"
    file.write_text("one\ntwo\nthree\n")
    async with open_terminal(init=TOOLS, arguments=[str(file)]) as opened:
        await opened.type("j")
        yield opened
        await opened.type("q")
        await opened.hides("mcp-tools://")
        assert await place(opened) == ["notes.txt", [2, 0]], "the user's window and cursor"


async def place(screen: Terminal) -> Any:
    return await screen.nvim.lua(
        "return { vim.fs.basename(vim.api.nvim_buf_get_name(0)), vim.api.nvim_win_get_cursor(0) }"
    )


async def call(screen: Terminal, text: str, *expected: str) -> str:
    await screen.command(f"McpTools call {text}")
    return await screen.shows(*expected)


async def test_results_are_shown_and_tools_see_the_users_file(screen: Terminal) -> None:
    for _ in range(2):
        await call(screen, "where", "\nnotes.txt", "call where: done in ", " ms ", "q close")
    await call(screen, "poem", "\nroses are red", "\nviolets are blue")
    await call(screen, "data", "\n{", '\n  "a": "x",', '\n  "b": [', "\n    1,", "\n    2", "\n  ]", "\n}")
    await call(screen, "mixed", "\na picture:", "\n[image image/png, 5 bytes]")
    await call(screen, 'test_echo {"text":""}', "call test_echo: done")


async def test_progress_is_shown_while_a_tool_runs_and_logs_stay(screen: Terminal) -> None:
    running = "call steps: running; :McpTools cancel stops it"
    await call(screen, "steps", running, "1/2  half of it", 'log info: {"seen":1}')
    await screen.nvim.lua("finish()")
    shown = await screen.shows("call steps: done in", "\nthe end", 'log info: {"seen":1}')
    assert "half of it" not in shown


async def test_mistakes_are_explained(screen: Terminal) -> None:
    """Also mistakes of tool authors, with a traceback."""
    await call(screen, "test_ecko {}", "Error (unknown_tool)", "did you mean test_echo?")
    await call(screen, "nvim_test_ecko {}", "Error (unknown_tool)", "did you mean nvim_test_echo?")
    await screen.nvim.lua("pcall(mcp_tools.register, { name = 'half_made', description = 'x' })")
    not_loaded = "not loaded: tool 'half_made': execute: is required"
    await call(screen, "nothing_like_it {}", ":McpTools tools lists all tools", not_loaded)
    await call(screen, 'test_echo {"txt":"x"}', "Error (validation_error)", "did you mean text?")
    await screen.command("McpTools call test_echo {}")
    shown = await screen.hides("did you mean text?")
    assert shown.count("text: is required") == 1
    example = ("The arguments must be NAME=VALUE or a JSON", 'An example: {"text": "text"}. Yours:')
    await call(screen, 'test_echo {"text":hi}', "not called ", *example)
    thrown = ("Error (execution_error)", "init.lua:", "on purpose", "stack traceback:")
    shown = await call(screen, "throws", *thrown)
    assert "mcp-tools/calls/" not in shown, "only the author's frames"
    assert "[C]: in function 'fn'" not in shown
    unknown = 'test_echo {"text":"x","txet":"y"}'
    shown = await call(screen, unknown, "Error (validation_error)", "txet: is not allowed")
    assert "the tool has no argument" not in shown, "reported once"
    await call(screen, 'poem {"txet":"y"}', "the tool has no argument txet", "roses are red")
    lines = await screen.nvim.lua("return vim.api.nvim_buf_get_lines(vim.fn.bufnr('call poem'), 0, -1, true)")
    assert lines[0].startswith("the tool has no argument txet")


async def test_the_user_answers_the_questions_of_a_tool(screen: Terminal) -> None:
    await call(screen, "form", "Tell me who you are: Which kind:", "1: Ay", "2: Bee")
    await screen.press("Enter")
    await screen.until(lambda text: text.count("1: Ay") == 2, "the question again: it has to be answered")
    await screen.enter("2")
    await screen.shows("Tell me who you are: Your name: ")
    await screen.press("Enter")
    await screen.shows("Your name [is required]: ")
    await screen.enter("Ada")
    await screen.shows("size, optional: ")
    await screen.enter("2")
    await screen.shows("size, optional [must be at least 3]: ")
    await screen.press("C-u")
    await screen.enter("5")
    await screen.shows("sure, optional:", "1: yes", "3: (skip)")
    await screen.press("Enter")
    shown = await screen.shows(
        "form: done in", '"action": "accept"', '"kind": "b"', '"name": "Ada"', '"size": 5'
    )
    assert "sure" not in shown.split("call form: done in")[1]
    await call(screen, "form", "Which kind:", "1: Ay")
    await screen.press("Escape")
    await screen.shows("form: done in", '"action": "cancel"')
