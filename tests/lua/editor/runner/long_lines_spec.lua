-- What is read of programs and of files takes its time by their length, and no more.

local names = require('mcp-tools.editor.runner.names')
local t = require('helpers')
local tap = require('mcp-tools.editor.runner.tap')
local targets = require('mcp-tools.editor.runner.targets')

local LONG = 16000

--- Fails when something takes long: by the square of a line's length it is seconds.
local function quick(fn)
  local begun = vim.uv.hrtime()
  local result = fn()
  local ms = (vim.uv.hrtime() - begun) / 1e6
  t.ok(ms < 2000, ('%d ms'):format(ms))
  return result
end

local function results(text)
  return tap.results('TAP version 14\n' .. text, function(path)
    return path == '/project/a.js' or path == '/project/my file.js'
  end, function() end)
end

describe('a long line', function()
  it('of a JavaScript file without a call is no test', function()
    for _, text in ipairs({ ('a'):rep(LONG), ('test.'):rep(LONG / 5), ('it'):rep(LONG / 2) }) do
      t.eq(
        {},
        quick(function()
          return names.all({ text }, names.language('a.js'))
        end)
      )
    end
    local found =
      names.all({ 'describe("one", () => {', '  it.only("two", f)', "  test('three')" }, names.language('a.js'))
    t.eq(
      { 'one', 'one > two', 'one > three' },
      vim.tbl_map(function(test)
        return test.name
      end, found)
    )
  end)

  it('of TAP is a failure without a place', function()
    for _, text in ipairs({ ('/'):rep(LONG), 'a' .. (' '):rep(LONG) .. 'b', ('a:1'):rep(LONG / 3) }) do
      local found = quick(function()
        return results('not ok 1 - one\n  ---\n  error: x' .. text .. '\n  stack: ' .. text .. '\n  ...\n')
      end)
      t.eq({ 1, nil }, { found.failed, found.failures[1].path })
    end
  end)

  it('of a Makefile is described', function()
    t.eq(
      { { name = 'a', description = 'b' } },
      quick(function()
        return targets.make('a: ##' .. (' '):rep(LONG) .. 'b' .. (' '):rep(LONG))
      end)
    )
  end)
end)

describe('a place in TAP', function()
  it('is found however it is written', function()
    for _, line in ipairs({
      'at f (/project/a.js:5:10)',
      'at f (file:///project/a.js:5:10)',
      'at /project/a.js:5:10',
      'at a/b /project/a.js:5:10',
      'at g (/other/b.js:1:2) at f (/project/a.js:5:10)',
    }) do
      local failure = results('not ok 1 - one\n  ---\n  stack: |-\n    ' .. line .. '\n  ...\n').failures[1]
      t.eq({ '/project/a.js', 5 }, { failure.path, failure.line }, line)
    end
    local failure = results("not ok 1 - one\n  ---\n  location: '/project/my file.js:7:1'\n  ...\n").failures[1]
    t.eq({ '/project/my file.js', 7 }, { failure.path, failure.line })
  end)
end)
