"""Two editors of one project write approval decisions at the same time, and none is lost."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.support.nvim import Spawn

ROUNDS = 150
# One change right after the other; `busy` counts those that found the other editor writing.
EDITOR = """
local Ledger = probe.ledger
_G.errors, _G.kept, _G.busy = {}, 0, 0
vim.notify = function(text) table.insert(errors, text) end
_G.ledger = Ledger.new({ dir = function() return STATE end })
local function definition(name)
  return { name = name, description = name, input_schema = { type = 'object' },
    source = { origin = 'registered', file = '/opt/plugin.lua' } }
end
function _G.decide(side, rounds)
  local step
  local function round(n)
    local ok, err = ledger:set('/project', definition(side .. n), 'trusted')
    kept = kept + (ok and 1 or 0)
    busy = busy + (next(ledger.waiting) and 1 or 0)
    table.insert(errors, err)
    if n % 10 == 0 then
      ledger:set('/project', definition('shared'), 'files', { '/' .. side .. n })
    end
    if n < rounds then vim.schedule(function() round(n + 1) end) else done = true end
  end
  round(1)
end
function _G.entries()
  local found = {}
  for _, entry in ipairs((Ledger.new({ dir = ledger.dir }):list('/project'))) do
    found[entry.tool] = entry.paths or true
  end
  return found
end
"""


async def test_all_decisions_of_two_editors_are_in_the_file(spawn_nvim: Spawn, tmp_path: Any) -> None:
    state = tmp_path / "state"
    init = f"_G.STATE = [[{state}]]\n{EDITOR}"
    one, two = [await spawn_nvim(init_lua=init) for _ in range(2)]
    await asyncio.gather(
        one.lua(f"vim.schedule(function() decide('a', {ROUNDS}) end)"),
        two.lua(f"vim.schedule(function() decide('b', {ROUNDS}) end)"),
    )
    for nvim in (one, two):
        await nvim.wait_for("return done and next(ledger.waiting) == nil", timeout=20_000)
        assert await nvim.lua("return errors") == []
        assert await nvim.lua("return kept") == ROUNDS
    found = await two.lua("return entries()")
    shared = found.pop("shared")
    assert set(found) == {f"{side}{n}" for side in "ab" for n in range(1, ROUNDS + 1)}
    assert set(shared) == {f"/{side}{n}" for side in "ab" for n in range(10, ROUNDS + 1, 10)}
    assert [file.name for file in (state / "ledger").iterdir() if file.suffix != ".json"] == []
    assert await one.lua("return busy") + await two.lua("return busy") > 0, "they never met"
