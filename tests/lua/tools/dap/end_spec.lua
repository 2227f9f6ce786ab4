-- slow
-- How a program ends under the tools: exit code, exceptions, output that is kept.

local dap = require('dap_project')
local t = require('helpers')

before_each(dap.open)
after_each(dap.close)

describe('the end of a program', function()
  it('is told with exit code and output, also when it was short, and what it printed is kept', function()
    local path = dap.write('short.py', 'import sys\nprint("out")\nprint("err", file=sys.stderr)\nsys.exit(3)\n')
    local answer = dap.run(path, { exception_filters = {} })
    t.eq({ 'ended', 3 }, { answer.status, answer.exit_code })
    t.matches('out', answer.output)
    local output = dap.ok('dap_program_output', { include_metadata = true })
    t.eq({ true, 3 }, { output.ended, output.exit_code })
    local by_category = {}
    for _, line in ipairs(output.lines) do
      by_category[line.category] = line.text
    end
    t.eq({ stdout = 'out', stderr = 'err' }, by_category)
    t.eq({ 'err' }, dap.ok('dap_program_output', { category = 'stderr' }).lines)
    t.eq({}, dap.ok('dap_program_output', { since = output.next }).lines)
    local sessions = dap.ok('dap_sessions').sessions
    t.eq(
      { 'ended', 'test', 3 },
      { sessions[#sessions].status, sessions[#sessions].name, sessions[#sessions].exit_code }
    )
    t.eq(false, dap.ok('dap_status').active)
  end)

  it('is told for an exception with its type and message', function()
    local path = dap.write('broken.py', 'def f(password):\n    raise ValueError("no " + "way")\n\nf("pa55word")\n')
    local answer = dap.run(path)
    t.eq({ 'exception', 'f (broken.py:2)' }, { answer.reason, answer.at })
    t.eq('no way', answer.exception.message)
    t.matches('ValueError', answer.exception.type)
    t.eq({ 'password = [secret]' }, answer.locals)
    local filters = {}
    for _, filter in ipairs(dap.ok('dap_exceptions').filters) do
      filters[filter.filter] = filter.active
    end
    t.eq({ true, false }, { filters.uncaught, filters.raised })
    local _, err = dap.call('dap_exceptions', { filters = { 'sometimes' } })
    t.matches("no 'sometimes' %(it has: .*raised", err.message)
    for _, filter in ipairs(dap.ok('dap_exceptions', { filters = { 'raised' } }).filters) do
      t.eq(filter.filter == 'raised', filter.active)
    end
    local again = dap.ok('dap_restart')
    t.eq({ 'exception', 'f (broken.py:2)' }, { again.reason, again.at })
    local ended = dap.ok('dap_terminate')
    t.eq({ true, 'ended' }, { ended.success, ended.status })
    t.eq(nil, dap.dap().session())
    t.eq('not_found', select(2, dap.call('dap_disconnect')).code)
  end)
end)
