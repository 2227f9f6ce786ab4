"""Tools that misbehave: each call ends exactly once, and the next one works."""

from __future__ import annotations

import asyncio
import json

import pytest
import pytest_asyncio

from tests.support.bridge import Bridge
from tests.support.raw import Raw, code_of, text_of, within
from tests.support.shared import forgotten

pytestmark = pytest.mark.asyncio(loop_scope="session")

TOOLS = """
local function tool(name, execute, more)
  mcp_tools.register(vim.tbl_extend('force', {
    name = name, description = name, annotations = { read_only = true }, execute = execute,
  }, more or {}))
end
tool('never', function() end, { timeout = 200 })
tool('late', function(ctx)
  vim.defer_fn(function() Seen.late = Seen.late + 1 ctx('too late') end, 400)
end, { timeout = 100 })
tool('hook_fails', function(ctx)
  ctx:on_cancel(function() error('hook') end)
  ctx:on_cancel(function(reason) table.insert(Seen.cancelled, reason) end)
  ctx:on_cancel(function() ctx('answer in the hook') end)
end, { timeout = 100 })
tool('answers_later_twice', function(ctx)
  vim.schedule(function() ctx('first') ctx(nil, 'second') end)
end)
tool('throws_later', function(ctx)
  vim.schedule(function() pcall(error, 'unheard') ctx('fine') end)
end)
tool('throws_nothing', function() error() end)
tool('throws_userdata', function() error(vim.uv.new_timer()) end)
tool('throws_a_cycle', function() local t = {} t.t = t error(t) end)
tool('throws_much', function() error(('x'):rep(2e6)) end)
tool('throws_bytes', function() error('a\\255b') end)
tool('overflows', function() local function f() return 1 + f() end return f() end)
tool('fails_with_nothing', function(ctx) ctx(nil, '') end)
tool('fails_with_table', function(ctx) ctx(nil, { some = 'table' }) end)
tool('fails_with_function', function(ctx)
  ctx(nil, { code = 'tool_error', message = 'odd', errors = print })
end)
tool('fails_with_userdata', function(ctx)
  local faults = { { field = vim.uv.new_timer(), message = 'm' } }
  ctx(nil, { code = 'not_found', message = 'odd', errors = faults })
end)
tool('fails_with_cycle', function(ctx)
  local required = {} required.a = required
  ctx(nil, { code = 'capability_missing', message = 'odd', required = required, retry_after_ms = 'soon' })
end)
tool('fails_with_false', function(ctx) ctx(nil, false) end)
tool('progresses_after', function(ctx) ctx('done') ctx:progress(1) ctx:log('info', 'x') end)
tool('floods', function(ctx)
  for i = 1, 5000 do ctx:progress(i, 5000, 'm') ctx:log('info', i) end
  ctx('flooded')
end)
tool('goes_away', function(ctx)
  mcp_tools.unregister('goes_away')
  vim.defer_fn(function() ctx('gone, but answered') end, 50)
end)
tool('replaces_itself', function(ctx)
  tool('replaces_itself', function(new) new('new') end)
  ctx('old')
end)
tool('calls_another', function(ctx)
  mcp_tools.call('nvim_echo', { value = 'inner' }, function(value) ctx(value) end)
end)
"""


@pytest_asyncio.fixture(loop_scope="session")
async def odd(held: Bridge) -> Bridge:
    """A bridge with tools that misbehave; on every Neovim, as it is Lua that catches them."""
    await held.nvim.lua(TOOLS)
    return held


async def outcome(raw: Raw, tool: str) -> tuple[str, str]:
    """Error code (or nothing) and text of a call."""
    result = await within(10, raw.call(tool))
    return (code_of(result) if result.get("isError") else ""), text_of(result)


async def test_every_misbehavior_has_its_exact_outcome(odd: Bridge, held_client: Raw) -> None:
    expected = {
        "never": ("timeout", "no result within 200 ms"),
        "late": ("timeout", "no result within 100 ms"),
        "hook_fails": ("timeout", "no result within 100 ms"),
        "answers_later_twice": ("", "first"),
        "throws_later": ("", "fine"),
        "throws_nothing": ("execution_error", "Tool execution error: nil"),
        "throws_userdata": ("execution_error", "Tool execution error: <userdata 1>"),
        "throws_a_cycle": ("execution_error", "Tool execution error: <1>{"),
        "throws_bytes": ("execution_error", "Tool execution error: a"),
        "throws_much": ("execution_error", "Tool execution error: xxx"),
        "overflows": ("execution_error", "Tool execution error: "),
        "fails_with_nothing": ("tool_error", "Error: "),
        "fails_with_function": ("execution_error", "the plugin failed inside Neovim"),
        "fails_with_userdata": ("execution_error", "the plugin failed inside Neovim"),
        "fails_with_cycle": ("execution_error", "the plugin failed inside Neovim"),
        "fails_with_false": ("tool_error", "Error: false"),
        "fails_with_table": ("tool_error", "some"),
        "progresses_after": ("", "done"),
        "floods": ("", "flooded"),
        "goes_away": ("", "gone, but answered"),
        "replaces_itself": ("", "old"),
        "calls_another": ("", "inner"),
    }
    for tool, (code, text) in expected.items():
        got = await outcome(held_client, tool)
        assert (got[0], text in got[1], "stack traceback" in got[1]) == (code, True, False), (tool, got)
    assert await outcome(held_client, "replaces_itself") == ("", "new")
    status, answer = await held_client.send(held_client.call_message("goes_away"))
    assert (status, answer["error"]["code"]) == (200, -32602)
    assert await odd.nvim.lua("return Seen.cancelled") == ["timeout"]
    await odd.nvim.wait_for("return Seen.late == 1")
    await forgotten(odd)


@pytest.mark.slow
async def test_answers_after_a_timeout_reach_no_other_call(odd: Bridge, held_client: Raw) -> None:
    calls = [asyncio.create_task(held_client.call("late")) for _ in range(20)]
    echoes = [asyncio.create_task(held_client.call("later", {"ms": 10 * n, "value": n})) for n in range(60)]
    assert {code_of(result) for result in await within(10, asyncio.gather(*calls))} == {"timeout"}
    values = [json.loads(text_of(result)) for result in await within(10, asyncio.gather(*echoes))]
    assert values == list(range(60))
    await odd.nvim.wait_for("return Seen.late == 20")
    await forgotten(odd)
