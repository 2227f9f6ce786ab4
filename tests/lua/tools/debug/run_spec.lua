-- slow
-- What can be run, and how a run begins: configurations, trust, approval, missing adapters.

local dap = require('dap_project')
local runner_project = require('runner_project')
local t = require('helpers')

before_each(dap.open)
after_each(dap.close)

local LAUNCH = [[
{
  // as VS Code writes it
  "version": "0.2.0",
  "configurations": [
    {
      "name": "Short", "type": "python", "request": "launch",
      "program": "${workspaceFolder}/short.py",
      "args": ["a,]", "// no comment"],
      "console": "integratedTerminal"
    },
    { "name": "Ask", "type": "python", "request": "launch", "program": "${input:which}" }
  ]
}
]]

--- The user trusts launch.json.
local function trust() runner_project.trust('.vscode/launch.json') end

describe('launch configurations', function()
  it("are the editor's, and those of launch.json once the user trusts it", function()
    dap.write('.vscode/launch.json', LAUNCH)
    dap.dap().configurations.python = {
      { name = 'File', type = 'python', request = 'launch', program = '${file}' },
      { name = 'Menu', type = 'nodejs', request = 'launch', program = function() end },
    }
    local answer = dap.ok('debug_inspect')
    t.eq({ "'File', 'Menu'", { 'python' } }, { answer.configurations, answer.adapters })
    t.matches('launch%.json: .*not trusted.*:trust', answer.withheld)
    dap.fails('not_found', "no 'Short'.*launch.json: .*not trusted", 'debug_run', { configuration = 'Short' })
    dap.fails('validation_error', "required %(configurations: 'File', 'Menu'%)", 'debug_run', {})
    trust()
    t.eq("'File', 'Menu', 'Short', 'Ask'", dap.ok('debug_inspect').configurations)
    t.eq(nil, dap.ok('debug_inspect').withheld)
    dap.fails('validation_error', 'would ask the user for program', 'debug_run', { configuration = 'Ask' })
    dap.write('.vscode/launch.json', LAUNCH .. '\n') -- changed since
    t.matches('not trusted', dap.ok('debug_inspect').withheld)
  end)

  it('are reported if launch.json is invalid', function()
    dap.write('.vscode/launch.json', '{ "configurations": [ }')
    trust()
    t.matches('invalid list of configurations', dap.ok('debug_inspect').withheld)
  end)

  it('of plugins are listed, except those of a provider that waits', function()
    dap.dap().providers = {
      configs = {
        plugin = function() return { { name = 'Plugged', type = 'python', request = 'launch', program = 'short.py' } } end,
        asking = function() return { { name = coroutine.yield() } } end,
        ['dap.launch.json'] = function() error('read here, and only when it is trusted') end,
      },
    }
    local answer = dap.ok('debug_inspect')
    dap.dap().providers = nil
    t.eq("'Plugged'", answer.configurations)
  end)
end)

it('messages of nvim-dap are restored when no program of a tool is left', function()
  local utils = require('dap.utils')
  local own = utils.notify
  dap.ok('debug_inspect')
  t.eq(own, utils.notify)
  dap.run(dap.write('short.py', 'print("over")\n'))
  t.wait(function() return utils.notify == own end, 10000)
end)

describe('debug_run', function()
  it('does not run a configuration that differs from the approved one', function()
    local run = require('mcp-tools.tools.debug.run')
    local one, other = dap.write('one.py', 'print("one")\n'), dap.write('other.py', 'print("other")\n')
    local args = { program = '${file}', options = { type = 'python' }, timeout_ms = 20000 }
    vim.cmd.edit(one)
    t.matches('one%.py', run.preview(vim.deepcopy(args)))
    vim.cmd.edit(other)
    dap.fails('stale', '', 'debug_run', args)
    t.eq('other', dap.ok('debug_run', args).output)
  end)

  it('runs a configuration by name, without a terminal window, with other arguments as overrides', function()
    dap.write('short.py', 'import sys, os\nprint(sys.argv[1:], os.environ.get("EXTRA"), os.getcwd())\n')
    dap.write('.vscode/launch.json', LAUNCH)
    trust()
    local windows = vim.api.nvim_list_wins()
    local answer = dap.ok('debug_run', { configuration = 'Short', options = { env = { EXTRA = 'more' } } })
    t.eq({ 'ended', 0 }, { answer.status, answer.exit_code })
    t.eq(("['a,]', '// no comment'] more %s"):format(dap.root), answer.output)
    t.eq(windows, vim.api.nvim_list_wins())
    local other = dap.ok('debug_run', { configuration = 'Ask', program = 'short.py', args = { 'x' } })
    t.matches("%['x'%] None", other.output)
  end)

  it('replaces ${file} by the current file, anywhere in a value', function()
    vim.cmd.edit(dap.write('short.py', 'import sys\nprint(sys.argv[1])\n'))
    t.terminal() -- an agent's own
    local answer =
      dap.run('${file}', { options = { type = 'python' }, args = { 'at ${fileBasename} in ${workspaceFolder}' } })
    t.eq('at short.py in ' .. dap.root, answer.output)
  end)

  it('takes adapter and fields from a configuration of the file type', function()
    local path = dap.write('short.py', 'import os, sys\nprint(os.environ.get("EXTRA"), sys.argv[1:])\n')
    dap.dap().adapters.debugpy, dap.dap().adapters.python = dap.dap().adapters.python, nil
    t.eq('None []', dap.run(path).output)
    dap.dap().configurations.python = {
      { name = 'Asks', type = 'debugpy', request = 'launch', program = '${file}', port = function() end },
      {
        name = 'File',
        type = 'debugpy',
        request = 'launch',
        program = '${file}',
        env = { EXTRA = 'x' },
        args = { 'no' },
      },
    }
    t.eq("x ['a']", dap.run(path, { args = { 'a' } }).output)
    dap.fails('not_found', "no adapter for the filetype 'lua'.*there are: debugpy", 'debug_run', { program = 'a.lua' })
  end)

  it('stops where an exception is raised, with exceptions', function()
    local path = dap.write('caught.py', 'try:\n    int("x")\nexcept ValueError:\n    pass\n')
    local answer = dap.run(path, { exceptions = true })
    t.eq({ 'exception', '<module> (caught.py:2)' }, { answer.reason, answer.at })
    dap.step('stop')
    t.eq('ended', dap.run(path).status)
  end)

  it('refuses invalid configurations with a reason, and starts nothing', function()
    local path = dap.write('short.py', 'print("over")\n')
    dap.dap().adapters.gone = { type = 'executable', command = '/nowhere/adapter' }
    for _, case in ipairs({
      { { type = 'pyhton' }, 'not_found', "no adapter 'pyhton'.*did you mean 'python'" },
      { { type = 'gone' }, 'not_found', '^options%.type: .*/nowhere/adapter' },
      { { request = 'start' }, 'validation_error', 'options%.request' },
      { { program = 'none.py' }, 'not_found', '^program: ' },
      { { cwd = 'none' }, 'not_found', '^cwd: .* /' },
      { { cwd = path }, 'not_found', '^cwd: ' },
      { { args = { '${input:which}' } }, 'validation_error', 'would ask the user for args' },
      { { python = { '/nowhere/python' } }, 'tool_error', 'refused to launch: ' },
    }) do
      dap.fails(case[2], case[3], 'debug_run', { program = path, options = case[1] })
    end
    dap.fails('not_found', "no 'None'; there are: none", 'debug_run', { configuration = 'None' })
    dap.fails('validation_error', 'test: cannot be used', 'debug_run', { test = 'a.py::test_a', program = path })
    t.wait(function() return next(dap.dap().sessions()) == nil end, 5000, 'the end of what was refused')
  end)

  it('attaches to a program and leaves it running', function()
    local server = assert(vim.uv.new_tcp())
    server:bind('127.0.0.1', 0)
    local port = server:getsockname().port
    server:close()
    local gate = dap.root .. '/gate'
    local path =
      dap.write('waiting.py', ('import os, time\nwhile not os.path.exists(%q):\n    time.sleep(0.02)\n'):format(gate))
    local out = {}
    local job = vim.fn.jobstart({ dap.python, '-m', 'debugpy', '--listen', '127.0.0.1:' .. port, path }, {
      on_exit = function(_, code) out.code = code end,
    })
    dap.dap().adapters.attached = { type = 'server', host = '127.0.0.1', port = port }
    local attach = { options = { type = 'attached', request = 'attach', port = port }, timeout_ms = 100 }
    local answer, err
    for _ = 1, 20 do -- until it listens
      answer, err = dap.call('debug_run', attach)
      if answer or out.code then
        break
      end
      t.matches('ended before the program began', err.message)
      vim.wait(200)
    end
    t.eq({ nil, 'running', true }, { err, answer.status, dap.set(path, 3).breakpoints[1].verified })
    t.eq('<module> (waiting.py:3)', dap.step('wait').at)
    dap.step('detach')
    t.eq(nil, out.code)
    dap.write('gate', '')
    t.wait(function() return out.code end, 10000, 'the end of the program')
    t.eq(0, out.code)
    vim.fn.jobstop(job)
  end)
end)

it('approval is required for what runs or changes something, with a preview', function()
  local path = dap.write('short.py', 'x = 1\n')
  local point = { path = path, line = 1, condition = 'danger()' }
  local function shown(name, args)
    local def = require('mcp-tools.tools.debug.' .. name)
    local text, err = t.try(def.preview, args)
    return def.needs_approval(args), text or err.message
  end
  local reason, text = shown('run', { program = path, breakpoints = { point }, expressions = { 'danger(2)' } })
  t.matches('runs .*short.py under the debugger', reason)
  t.matches({ 'program = ".*/short.py"', 'line 1 of .*short.py\n.*danger%(%)\nEvaluates: danger%(2%)$' }, text)
  reason, text = shown('breakpoints', { set = { point } })
  t.matches('expression', reason)
  t.matches('condition: danger%(%)', text)
  dap.set(path, 1)
  reason, text = shown('breakpoints', { clear = true })
  t.eq({ 'it changes breakpoints', 'Removes the breakpoints of short.py in 1' }, { reason, text })
  t.eq({ false, false }, { (shown('breakpoints', {})), (shown('inspect', {})) })
  t.matches('runs expressions', (shown('inspect', { expressions = { '1' } })))
  for _, how in ipairs({ 'continue', 'over', 'into', 'out', 'to_line', 'pause', 'stop', 'detach' }) do
    reason, text = shown('step', { how = how, line = 1 })
    t.eq('string', type(reason))
    t.matches('^no active debug session', text, how)
  end
  t.eq(false, (shown('step', { how = 'wait' })))
  t.matches('runs expressions', (shown('step', { how = 'wait', expressions = { '1' } })))
end)

local TEST = table.concat({
  'def test_right():', -- 1
  '    value = 4',
  '    assert value == 4', -- 3
  '',
  '',
  'def test_wrong():', -- 6
  '    value = 5',
  '    print("seen")', -- 8
  '    assert value == 4',
  '',
}, '\n')

describe('a test under the debugger', function()
  before_each(function()
    vim.env.VIRTUAL_ENV = vim.fs.dirname(vim.fs.dirname(dap.python))
    dap.write('test_value.py', TEST)
  end)

  it('stops at a breakpoint, and then continues to its end', function()
    local points = { { path = 'test_value.py', line = 3 } }
    local stop = dap.ok('debug_run', { test = 'test_value.py::test_right', breakpoints = points })
    t.eq({ 'stopped', 'breakpoint' }, { stop.status, stop.reason })
    t.matches('test_value%.py:3', stop.at)
    t.eq({ '4' }, dap.values('value'))
    local ended = dap.step('continue', { timeout_ms = 20000 })
    t.eq({ 'ended', 0 }, { ended.status, ended.exit_code })
    t.matches('1 passed', ended.output)
  end)

  it('stops where it fails, unless exceptions is false', function()
    local stop = dap.ok('debug_run', { test = 'test_value.py::test_wrong' })
    t.eq({ 'stopped', 'exception' }, { stop.status, stop.reason })
    t.matches('test_value%.py:9', stop.at)
    t.matches('seen', stop.output)
    local ended = dap.ok('debug_run', { test = 'test_value.py::test_wrong', exceptions = false })
    t.eq({ 'ended', 1 }, { ended.status, ended.exit_code })
  end)

  it('shows its command in the preview', function()
    local shown = require('mcp-tools.tools.debug.run').preview({ test = 'x.py::test_x' })
    t.matches('^under the debugger in .*\nMCP_TOOLS_TESTS=.*x%.py::test_x.*\n%$ .*%-m pytest .*%-%-capture=no$', shown)
  end)
end)
