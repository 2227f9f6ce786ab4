-- slow
-- Breakpoints through the tools: where they are, whether they are bound, and that they are removed.

local dap = require('dap_project')
local t = require('helpers')

before_each(dap.open)
after_each(dap.close)

local path
before_each(function() path = dap.write('loop.py', dap.LOOP) end)

--- Breakpoints of nvim-dap, all in one file.
local function lines_of_nvim_dap()
  local lines = vim.tbl_map(
    function(point) return point.line end,
    select(2, next(require('dap.breakpoints').get())) or {}
  )
  table.sort(lines)
  return lines
end

describe('breakpoints without a program', function()
  it('are set in a file that is not open, without a window or a listed buffer', function()
    local wins, listed = vim.api.nvim_list_wins(), #vim.fn.getbufinfo({ buflisted = 1 })
    local set = { { path = 'loop.py', line = 6, condition = 'n == 2' } }
    local point = dap.ok('debug_breakpoints', { set = set }).breakpoints[1]
    t.eq({ 'loop.py', 6, 'n == 2', 'sum_ += n' }, { point.path, point.line, point.condition, point.text })
    t.eq({ wins, listed }, { vim.api.nvim_list_wins(), #vim.fn.getbufinfo({ buflisted = 1 }) })
    t.eq({ 6 }, lines_of_nvim_dap())
  end)

  it('are set by buffer, and replaced in the same line', function()
    vim.cmd.edit(path)
    dap.ok('debug_breakpoints', { set = { { bufnr = 0, line = 6 } } })
    local all = dap.ok('debug_breakpoints', {
      set = { { path = path, line = 6, log_message = 'n is {n}' }, { path = path, line = 7, hit_condition = '2' } },
    })
    t.eq(2, all.total)
    t.eq({ 'n is {n}', '2' }, { all.breakpoints[1].log_message, all.breakpoints[2].hit_condition })
    t.eq(all, dap.ok('debug_breakpoints'))
  end)

  it('are set where the code of a function begins, without a line', function()
    vim.cmd('filetype on')
    dap.write('sum.lua', 'local M = {}\n--- Adds.\nfunction M.sum(\n  a,\n  b\n)\n  return a + b\nend\nreturn M\n')
    dap.write('sum.c', 'int sum(int a, int b)\n{\n\n  // Adds.\n  return a + b;\n}\nint one(void) { return 1; }\n')
    local set = { { symbol = 'M/sum' }, { symbol = 'sum', path = 'sum.c', condition = 'a' }, { symbol = 'one' } }
    local rows = vim.tbl_map(
      function(point) return point.path .. ':' .. point.line end,
      dap.ok('debug_breakpoints', { set = set }).breakpoints
    )
    table.sort(rows)
    t.eq({ 'sum.c:5', 'sum.c:7', 'sum.lua:7' }, rows)
    dap.fails('not_found', 'no "nothing" in the project', 'debug_breakpoints', { set = { { symbol = 'nothing' } } })
    local both = { symbol = 'one', path = 'sum.c', line = 7 }
    dap.fails('validation_error', 'a line or a symbol, and not both', 'debug_breakpoints', { set = { both } })
  end)

  it('are removed by line, by file, or all; a line without one is an error', function()
    dap.set(path, 6, 7, 8)
    local line_2 = { path = path, line = 2 }
    dap.fails('not_found', 'no breakpoint in line 2 of loop%.py', 'debug_breakpoints', { remove = { line_2 } })
    t.eq({ 6, 7, 8 }, lines_of_nvim_dap())
    t.eq(2, dap.ok('debug_breakpoints', { remove = { { path = path, line = 6 } } }).total)
    t.eq({ 7, 8 }, lines_of_nvim_dap())
    local other = { path = dap.write('b.py', 'x\n') }
    dap.fails('not_found', 'no breakpoint in b%.py', 'debug_breakpoints', { remove = { other } })
    t.eq(0, dap.ok('debug_breakpoints', { remove = { { path = path } } }).total)
    dap.set(path, 6, 7)
    t.eq({ breakpoints = {}, total = 0 }, dap.ok('debug_breakpoints', { clear = true }))
    t.eq({}, lines_of_nvim_dap())
  end)

  it('are refused with a reason, all or none', function()
    local cases = {
      { { line = 1 }, 'validation_error', 'exactly one of path and bufnr' },
      { { path = path }, 'validation_error', 'a line or a symbol' },
      { { symbol = 'x', path = dap.root .. '/none.py' }, 'not_found', 'no such file' },
      { { symbol = '' }, 'validation_error', 'symbol' },
      { { path = path, line = 0 }, 'validation_error', 'line' },
      { { path = path, line = 99 }, 'validation_error', 'line 99 is beyond the end of loop%.py %(16 lines%)' },
      { { path = dap.root .. '/none.py', line = 1 }, 'not_found', 'no such file' },
      { { bufnr = 9999, line = 1 }, 'not_found', 'no buffer 9999' },
    }
    for _, case in ipairs(cases) do
      dap.fails(case[2], case[3], 'debug_breakpoints', { set = { { path = path, line = 6 }, case[1] } })
    end
    vim.cmd.enew()
    dap.fails('tool_error', 'has no file', 'debug_breakpoints', { set = { { bufnr = 0, line = 1 } } })
    t.eq({}, lines_of_nvim_dap())
  end)
end)

describe('breakpoints with a program', function()
  it('report whether and where they are bound, and take effect at once', function()
    dap.ok('debug_breakpoints', { set = { { path = path, line = 6, condition = 'n == 2' } } })
    t.eq({ 'n = 2', 'numbers = [1, 2, 3]', 'sum_ = 1' }, dap.run(path).locals)
    local list = dap.set(path, 9, 14).breakpoints
    t.eq({ 6, 9, 14 }, { list[1].line, list[2].line, list[3].line })
    t.eq({ true, true, 8 }, { list[1].verified, list[2].verified, list[2].bound_line })
    t.eq({ true, nil }, { list[3].verified, list[3].bound_line })
    dap.ok('debug_breakpoints', { remove = { { path = path, line = 9 } } })
    t.eq('main (loop.py:14)', dap.step('continue').at)
    dap.set(path, 13)
    dap.step('restart')
    dap.ok('debug_breakpoints', { clear = true })
    t.eq('ended', dap.step('continue').status)
  end)

  it('are listed if they could not be bound', function()
    dap.set(dap.write('never.txt', 'no code\n'), 1)
    dap.set(path, 16)
    dap.run(path)
    local all = {}
    for _, point in ipairs(dap.ok('debug_breakpoints').breakpoints) do
      all[point.path] = point.verified
    end
    t.eq(true, all['loop.py'])
    t.ok(all['never.txt'] ~= nil)
  end)

  it('print instead of stopping, with log_message', function()
    dap.ok('debug_breakpoints', { set = { { path = path, line = 6, log_message = 'sum {sum_}' } } })
    local ended = dap.run(path)
    t.eq('ended', ended.status)
    t.matches('sum 3', ended.output)
  end)
end)

describe('breakpoints of one run', function()
  it("are removed when the program ends, however the text has changed; the user's stay", function()
    dap.set(path, 12)
    local points = { { path = path, line = 6 }, { path = path, line = 12 } }
    t.eq('main (loop.py:12)', dap.run(path, { breakpoints = points }).at)
    t.eq({ { 6, 12 }, 'total (loop.py:6)' }, { lines_of_nvim_dap(), dap.step('continue').at })
    t.eq('main (loop.py:12)', dap.step('restart').at)
    vim.api.nvim_buf_set_lines(vim.fn.bufnr(path), 0, 0, false, { '# one more' })
    dap.step('stop')
    t.eq({ 13 }, lines_of_nvim_dap())
  end)

  it('are not set if the program cannot start', function()
    local point = { path = path, line = 6 }
    dap.fails('not_found', '^program: ', 'debug_run', { program = 'none.py', breakpoints = { point } })
    local invalid = { python = { '/nowhere/python' } }
    dap.fails('tool_error', 'refused', 'debug_run', { program = path, options = invalid, breakpoints = { point } })
    local beyond = { { path = path, line = 6 }, { path = path, line = 99 } }
    dap.fails('validation_error', 'line 99', 'debug_run', { program = path, breakpoints = beyond })
    t.eq({}, lines_of_nvim_dap())
  end)

  it('are reported if none was reached', function()
    local answer =
      dap.run(dap.write('short.py', 'def f():\n    return 1\n'), { breakpoints = { { path = 'short.py', line = 2 } } })
    t.eq('ended', answer.status)
    t.matches('none of the breakpoints', answer.note)
  end)
end)

describe('a run to a line', function()
  it('reaches its line, leaves no breakpoint, and reports a stop at another one', function()
    dap.set(path, 12)
    dap.run(path)
    dap.fails('validation_error', 'beyond the end', 'debug_step', { how = 'to_line', path = path, line = 99 })
    dap.fails('validation_error', '^line: required', 'debug_step', { how = 'to_line', path = path })
    dap.fails('not_found', 'no such file', 'debug_step', { how = 'to_line', path = 'none.py', line = 1 })
    local there = dap.step('to_line', { line = 8 })
    t.eq({ true, 'total (loop.py:8)', { 12 } }, { there.reached, there.at, (lines_of_nvim_dap()) })
    dap.set(path, 13)
    local other = dap.step('to_line', { path = path, line = 14 })
    t.eq({ false, 'main (loop.py:13)', 'ended' }, { other.reached, other.at, dap.step('continue').status })
    dap.fails('not_found', '', 'debug_step', { how = 'to_line', path = path, line = 8 })
  end)

  it('leaves no breakpoint if it is cancelled', function()
    local gate = dap.root .. '/gate'
    local waiting = dap.write(
      'waiting.py',
      'import os, sys, time\nbegun = 1\nwhile not os.path.exists(sys.argv[1]):\n    time.sleep(0.02)\nprint("done")\n'
    )
    dap.set(waiting, 2)
    dap.run(waiting, { args = { gate } })
    local sent = {}
    dap.dap().listeners.before.setBreakpoints.spec = function(_, _, _, arguments)
      table.insert(sent, t.field('line', arguments.breakpoints))
    end
    local call = dap.start('debug_step', { how = 'to_line', path = waiting, line = 5 })
    t.wait(
      function() return #sent == 1 and dap.ok('debug_inspect').status == 'running' end,
      10000,
      'the program going on'
    )
    t.eq({ 5, 2 }, sent[1])
    call.cancel()
    t.wait(function() return #sent == 2 end, 10000, 'the earlier breakpoints')
    t.eq({ 2 }, sent[2])
    dap.dap().listeners.before.setBreakpoints.spec = nil
    dap.write('gate', '')
    t.eq('ended', dap.step('wait', { timeout_ms = 10000 }).status)
  end)
end)
