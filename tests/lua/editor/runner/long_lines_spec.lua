-- Output of programs and files with long lines is read in linear time.

local pytest = require('mcp-tools.editor.runner.pytest')
local scripts = require('mcp-tools.editor.runner.scripts')
local t = require('helpers')

local LONG = 16000

it('results of pytest are read without lines that are not events', function()
  local lines = { '1', 'null', 'true', '"id"', '[1]', 'no JSON', '{"id":"test_a","outcome":"passed"}' }
  local results = t.ok(pytest.results(table.concat(lines, '\n'), function() end))
  t.eq({ 1, {} }, { results.passed, results.failures })
end)

it('a long line of a Python file is not a test, and one of a Makefile is described', function()
  local begun = vim.uv.hrtime()
  for _, text in ipairs({ ('a'):rep(LONG), (' '):rep(LONG), 'def ' .. ('test_'):rep(LONG / 5) }) do
    t.eq({}, pytest.tests({ text }))
  end
  local targets = scripts.targets('a: ##' .. (' '):rep(LONG) .. 'b' .. (' '):rep(LONG))
  t.eq({ { name = 'a', description = 'b' } }, targets)
  local ms = (vim.uv.hrtime() - begun) / 1e6 -- by the square of a line's length it is seconds
  t.ok(ms < 2000, ('%d ms'):format(ms))
end)
