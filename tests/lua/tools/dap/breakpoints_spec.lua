-- slow
-- Breakpoints through the tools: where they are, whether they are bound, and that they go.

local dap = require('dap_project')
local t = require('helpers')

before_each(dap.open)
after_each(dap.close)

local path
before_each(function()
  path = dap.write('loop.py', dap.LOOP)
end)

--- Those of the adapter's client, which are all in one file.
local function lines_of_client()
  local lines = vim.tbl_map(function(point)
    return point.line
  end, select(2, next(require('dap.breakpoints').get())) or {})
  table.sort(lines)
  return lines
end

describe('breakpoints without a program', function()
  it('are set in a file that is not open, without a window or a listed buffer', function()
    local wins, listed = vim.api.nvim_list_wins(), #vim.fn.getbufinfo({ buflisted = 1 })
    local answer = dap.ok('dap_set_breakpoint', { filename = 'loop.py', line = 6, condition = 'n == 2' })
    t.eq({ 'loop.py', 6, 'conditional', 'n == 2' }, { answer.file, answer.line, answer.type, answer.condition })
    t.matches('bound when a program is run', answer.note)
    t.matches('>6         sum_ %+= n', answer.code)
    t.eq({ wins, listed }, { vim.api.nvim_list_wins(), #vim.fn.getbufinfo({ buflisted = 1 }) })
    t.eq({ 6 }, lines_of_client())
  end)

  it('are set by buffer, replaced in the same line, and listed in pages', function()
    vim.cmd.edit(path)
    dap.ok('dap_set_breakpoint', { bufnr = 0, line = 6 })
    dap.ok('dap_set_breakpoint', { path = path, line = 6, log_message = 'n is {n}' })
    dap.ok('dap_set_breakpoint', { filename = path, line = 7, hit_condition = '2' })
    local all = dap.ok('dap_breakpoints')
    t.eq(2, all.total)
    t.eq({ 'logpoint', 'n is {n}', nil }, { all.breakpoints[1].type, all.breakpoints[1].log_message, all.next_offset })
    t.eq('2', all.breakpoints[2].hit_condition)
    local page = dap.ok('dap_breakpoints', { limit = 1 })
    t.eq({ 6, 1 }, { page.breakpoints[1].line, page.next_offset })
    t.eq(7, dap.ok('dap_breakpoints', { limit = 1, offset = 1 }).breakpoints[1].line)
  end)

  it('are removed; a line without one is an error', function()
    dap.ok('dap_set_breakpoint', { filename = path, line = 6 })
    dap.fails('not_found', 'no breakpoint in line 7', 'dap_remove_breakpoint', { filename = path, line = 7 })
    t.eq({ 6 }, lines_of_client())
    t.matches('0 breakpoints are left', dap.ok('dap_remove_breakpoint', { filename = path, line = 6 }).message)
    t.eq({}, lines_of_client())
    dap.fails('not_found', '', 'dap_remove_breakpoint', { filename = dap.write('b.py', 'x\n'), line = 1 })
    dap.ok('dap_set_breakpoint', { filename = path, line = 6 })
    dap.ok('dap_set_breakpoint', { filename = path, line = 7 })
    t.eq('2 breakpoints removed', dap.ok('dap_clear_breakpoints').message)
    t.eq({}, lines_of_client())
  end)

  it('are refused with a reason', function()
    local cases = {
      { { line = 1 }, 'validation_error', 'exactly one of path and bufnr' },
      { { filename = path }, 'validation_error', 'line' },
      { { filename = path, line = 0 }, 'validation_error', 'line' },
      { { filename = path, line = 99 }, 'validation_error', 'line 99 is beyond the end %(16 lines%)' },
      { { filename = path, path = path, line = 1 }, 'validation_error', 'filename' },
      { { filename = dap.root .. '/none.py', line = 1 }, 'not_found', 'no file' },
      { { bufnr = 9999, line = 1 }, 'not_found', 'no buffer 9999' },
    }
    for _, case in ipairs(cases) do
      dap.fails(case[2], case[3], 'dap_set_breakpoint', case[1])
    end
    vim.cmd.enew()
    dap.fails('tool_error', 'has no file', 'dap_set_breakpoint', { bufnr = 0, line = 1 })
    t.eq({}, lines_of_client())
  end)
end)

describe('breakpoints with a program', function()
  it('report whether and where they are bound, and take effect at once', function()
    dap.ok('dap_set_breakpoint', { filename = path, line = 6, condition = 'n == 2' })
    t.eq({ 'n = 2', 'numbers = [1, 2, 3]', 'sum_ = 1' }, dap.run(path).locals)
    local moved = dap.ok('dap_set_breakpoint', { filename = path, line = 9 })
    t.eq({ true, 8 }, { moved.verified, moved.bound_line })
    t.eq(nil, moved.note)
    local other = dap.ok('dap_set_breakpoint', { filename = path, line = 14 })
    t.eq({ true, nil }, { other.verified, other.bound_line })
    local list = dap.ok('dap_breakpoints').breakpoints
    t.eq({ 6, 9, 14 }, { list[1].line, list[2].line, list[3].line })
    t.eq({ true, true, 8 }, { list[1].verified, list[2].verified, list[2].bound_line })
    dap.ok('dap_remove_breakpoint', { filename = path, line = 9 })
    t.eq('main (loop.py:14)', dap.ok('dap_continue').at)
    dap.ok('dap_set_breakpoint', { filename = path, line = 13 })
    dap.ok('dap_restart')
    t.eq('3 breakpoints removed', dap.ok('dap_clear_breakpoints').message)
    t.eq('ended', dap.ok('dap_continue').status)
  end)

  it('are listed if they could not be bound', function()
    local other = dap.write('never.txt', 'no code\n')
    dap.ok('dap_set_breakpoint', { filename = other, line = 1 })
    dap.ok('dap_set_breakpoint', { filename = path, line = 16 })
    dap.run(path)
    local all = {}
    for _, point in ipairs(dap.ok('dap_breakpoints').breakpoints) do
      all[point.file] = point.verified
    end
    t.eq(true, all['loop.py'])
    t.ok(all['never.txt'] ~= nil, 'nothing is said of a breakpoint that the adapter has')
  end)

  it('print instead of stopping, with log_message', function()
    dap.ok('dap_set_breakpoint', { filename = path, line = 6, log_message = 'sum {sum_}' })
    local ended = dap.run(path)
    t.eq('ended', ended.status)
    t.matches('sum 3', ended.output)
  end)
end)

describe('dap_run_to', function()
  it('reaches its line, leaves no breakpoint, and reports a stop at another one', function()
    dap.ok('dap_set_breakpoint', { filename = path, line = 12 })
    dap.run(path)
    dap.fails('validation_error', 'beyond the end', 'dap_run_to', { filename = path, line = 99 })
    dap.fails('not_found', 'no file', 'dap_run_to', { filename = 'none.py', line = 1 })
    local there = dap.ok('dap_run_to', { filename = path, line = 8 })
    t.eq({ true, 'total (loop.py:8)' }, { there.reached, there.at })
    t.eq({ 12 }, lines_of_client())
    dap.ok('dap_set_breakpoint', { filename = path, line = 13 })
    local held = dap.ok('dap_run_to', { filename = path, line = 14 })
    t.eq({ false, 'main (loop.py:13)' }, { held.reached, held.at })
    t.eq('ended', dap.ok('dap_continue').status)
    dap.fails('not_found', '', 'dap_run_to', { filename = path, line = 8 })
  end)

  it('leaves no breakpoint if it is cancelled', function()
    local gate = dap.root .. '/gate'
    local waiting = dap.write(
      'waiting.py',
      'import os, sys, time\nbegun = 1\nwhile not os.path.exists(sys.argv[1]):\n    time.sleep(0.02)\nprint("done")\n'
    )
    dap.ok('dap_set_breakpoint', { filename = waiting, line = 2 })
    dap.run(waiting, { args = { gate } })
    local sent = {}
    dap.dap().listeners.before.setBreakpoints.spec = function(_, _, _, arguments)
      table.insert(
        sent,
        vim.tbl_map(function(point)
          return point.line
        end, arguments.breakpoints)
      )
    end
    local call = dap.start('dap_run_to', { filename = waiting, line = 5 })
    t.wait(function()
      return #sent == 1 and dap.ok('dap_status').status == 'running'
    end, 10000, 'the program going on')
    t.eq({ 5, 2 }, sent[1])
    call.cancel()
    t.wait(function()
      return #sent == 2
    end, 10000, 'the breakpoints of before')
    t.eq({ 2 }, sent[2])
    dap.dap().listeners.before.setBreakpoints.spec = nil
    dap.write('gate', '')
    t.eq('ended', dap.ok('dap_wait_until_paused', { timeout_ms = 10000 }).status)
  end)
end)
