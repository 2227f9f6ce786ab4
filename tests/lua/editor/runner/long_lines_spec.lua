-- What is read of programs and of files takes its time by their length, and no more.

local pytest = require('mcp-tools.editor.runner.pytest')
local scripts = require('mcp-tools.editor.runner.scripts')
local t = require('helpers')

local LONG = 16000

--- Fails when something takes long: by the square of a line's length it is seconds.
local function quick(fn)
  local begun = vim.uv.hrtime()
  local result = fn()
  local ms = (vim.uv.hrtime() - begun) / 1e6
  t.ok(ms < 2000, ('%d ms'):format(ms))
  return result
end

describe('results of pytest', function()
  it('are read without lines that are not events', function()
    local lines = { '1', 'null', 'true', '"id"', '[1]', 'no JSON', '{"id":"test_a","outcome":"passed"}' }
    local results = t.ok(pytest.results(table.concat(lines, '\n'), function() end))
    t.eq(1, results.passed)
    t.eq({}, results.failures)
  end)
end)

describe('a long line', function()
  it('of a Python file is no test', function()
    for _, text in ipairs({ ('a'):rep(LONG), (' '):rep(LONG), 'def ' .. ('test_'):rep(LONG / 5) }) do
      t.eq(
        {},
        quick(function()
          return pytest.tests({ text })
        end)
      )
    end
  end)

  it('of a Makefile is described', function()
    t.eq(
      { { name = 'a', description = 'b' } },
      quick(function()
        return scripts.targets('a: ##' .. (' '):rep(LONG) .. 'b' .. (' '):rep(LONG))
      end)
    )
  end)
end)
