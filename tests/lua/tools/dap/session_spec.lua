-- slow
-- A whole debug session through the tools, as a model has it.

local dap = require('dap_project')
local t = require('helpers')

before_each(dap.open)
after_each(dap.close)

describe('a debug session', function()
  it('takes eight calls from the launch to the output, and half a kilobyte a stop', function()
    local path = dap.write('loop.py', dap.LOOP)
    local calls, sizes = 0, {}
    local function call(name, args)
      calls = calls + 1
      local answer = dap.ok(name, args)
      sizes[#sizes + 1] = #vim.json.encode(answer)
      return answer
    end
    local set = call('dap_set_breakpoint', { filename = path, line = 6 })
    t.eq({ 'loop.py', 6, nil }, { set.file, set.line, set.verified })
    local first = call('dap_run', { type = 'python', request = 'launch', name = 'loop', program = 'loop.py' })
    t.eq({ 'stopped', 'breakpoint', 'total (loop.py:6)' }, { first.status, first.reason, first.at })
    t.eq({ 'main (loop.py:12)', '<module> (loop.py:16)' }, first.callers)
    t.eq({ 'n = 1', 'numbers = [1, 2, 3]', 'sum_ = 0' }, first.locals)
    t.matches('\n>6         sum_ %+= n\n', first.code)
    local step = call('dap_step_over')
    t.eq({ 'step', 'total (loop.py:7)' }, { step.reason, step.at })
    t.eq({ 'sum_ = 1' }, step.changed)
    t.eq(nil, step.locals)
    local second = call('dap_continue')
    t.eq({ 'breakpoint', 'add 1' }, { second.reason, second.output })
    t.eq({ 'n = 2' }, second.changed)
    t.eq('[1, 2, 3, 4]', call('dap_evaluate', { expression = 'numbers + [4]' }).result)
    call('dap_clear_breakpoints')
    local last = call('dap_continue')
    t.eq({ 'ended', 0, 'add 2\nadd 3\ntotal 6' }, { last.status, last.exit_code, last.output })
    t.eq({ 'add 1', 'add 2', 'add 3', 'total 6' }, call('dap_program_output', { category = 'stdout' }).lines)
    t.ok(calls <= 8)
    for _, size in ipairs(sizes) do
      t.ok(size <= 600, ('an answer has %d bytes'):format(size))
    end
  end)
end)
