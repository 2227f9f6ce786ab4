-- slow
-- What can be run, and how a run begins: configurations, trust, approval, adapters that are not there.

local core = require('mcp-tools.core')
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
local function trust()
  runner_project.trust('.vscode/launch.json')
end

---@param name string
local function named(name)
  for _, config in ipairs(dap.ok('dap_configurations').configurations) do
    if config.name == name then
      return config
    end
  end
end

describe('dap_configurations', function()
  it("lists the editor's, and those of launch.json once the user trusts it", function()
    dap.write('.vscode/launch.json', LAUNCH)
    dap.dap().configurations.python = {
      { name = 'File', type = 'python', request = 'launch', program = '${file}' },
      { name = 'Menu', type = 'nodejs', request = 'launch', program = function() end },
    }
    local answer = dap.ok('dap_configurations')
    t.eq({ 2, { 'python' } }, { answer.total, answer.adapters })
    t.eq({ 'File', 'python' }, { answer.configurations[1].name, answer.configurations[1].source })
    t.eq('${file}', answer.configurations[1].program)
    t.eq({ { 'program' }, true }, { answer.configurations[2].asks, answer.configurations[2].no_adapter })
    t.eq('.vscode/launch.json', answer.withheld[1].path)
    t.matches('not trusted.*:trust', answer.withheld[1].why)
    dap.fails('not_found', "no 'Short'.*launch.json: .*not trusted", 'dap_run', { configuration = 'Short' })
    trust()
    t.eq({ '.vscode/launch.json', '${workspaceFolder}/short.py' }, { named('Short').source, named('Short').program })
    t.eq({ 'program' }, named('Ask').asks)
    t.eq(nil, dap.ok('dap_configurations').withheld)
    local page = dap.ok('dap_configurations', { limit = 1, offset = 1 })
    t.eq({ 'Menu', 2, 4 }, { page.configurations[1].name, page.next_offset, page.total })
    dap.write('.vscode/launch.json', LAUNCH .. '\n') -- changed since
    t.matches('not trusted', dap.ok('dap_configurations').withheld[1].why)
  end)

  it('reports an invalid launch.json', function()
    dap.write('.vscode/launch.json', '{ "configurations": [ }')
    trust()
    t.matches('invalid list of configurations', dap.ok('dap_configurations').withheld[1].why)
  end)
end)

it('configurations of plugins are listed, except those of a provider that waits', function()
  dap.dap().providers = {
    configs = {
      plugin = function()
        return { { name = 'Plugged', type = 'python', request = 'launch', program = 'short.py' } }
      end,
      asking = function()
        return { { name = coroutine.yield() } }
      end,
      ['dap.launch.json'] = function()
        error('read here, and only when it is trusted')
      end,
    },
  }
  local answer = dap.ok('dap_configurations')
  dap.dap().providers = nil
  t.eq({ 1, 'Plugged', 'plugin' }, { answer.total, answer.configurations[1].name, answer.configurations[1].source })
end)

it('messages of nvim-dap are restored when no program of a tool is left', function()
  local utils = require('dap.utils')
  local own = utils.notify
  dap.ok('dap_configurations')
  t.eq(own, utils.notify)
  dap.run(dap.write('short.py', 'print("over")\n'))
  t.wait(function()
    return utils.notify == own
  end, 10000)
end)

describe('dap_run', function()
  it('does not run a configuration that differs from the approved one', function()
    local run = require('mcp-tools.tools.dap.run')
    local one, other = dap.write('one.py', 'print("one")\n'), dap.write('other.py', 'print("other")\n')
    local args = { type = 'python', request = 'launch', name = 'test', program = '${file}', wait_until_paused = true }
    args.wait_timeout_ms = 20000
    vim.cmd.edit(one)
    t.matches('one%.py', run.preview(vim.deepcopy(args)))
    vim.cmd.edit(other)
    dap.fails('stale', '', 'dap_run', args)
    t.eq('other', dap.ok('dap_run', args).output)
  end)

  it('runs a configuration by name, without a terminal window, with other arguments as overrides', function()
    dap.write('short.py', 'import sys, os\nprint(sys.argv[1:], os.environ.get("EXTRA"), os.getcwd())\n')
    dap.write('.vscode/launch.json', LAUNCH)
    trust()
    local windows = vim.api.nvim_list_wins()
    local answer = dap.ok('dap_run', { configuration = 'Short', env = { EXTRA = 'more' } })
    t.eq({ 'ended', 0 }, { answer.status, answer.exit_code })
    t.eq(("['a,]', '// no comment'] more %s"):format(dap.root), answer.output)
    t.eq(windows, vim.api.nvim_list_wins())
    local other = dap.ok('dap_run', { configuration = 'Ask', program = 'short.py', args = { 'x' } })
    t.matches("%['x'%] None", other.output)
  end)

  it('replaces ${file} by the current file, anywhere in a value', function()
    vim.cmd.edit(dap.write('short.py', 'import sys\nprint(sys.argv[1])\n'))
    t.terminal() -- an agent's own
    local answer = dap.run('${file}', { args = { 'at ${fileBasename} in ${workspaceFolder}' } })
    t.eq('at short.py in ' .. dap.root, answer.output)
  end)

  it('returns at once with wait_until_paused=false; the end is reported later', function()
    local path = dap.write('short.py', 'print("over")\n')
    local answer = dap.run(path, { wait_until_paused = false })
    t.eq('running', answer.status)
    t.eq({ 'ended', 'over' }, { dap.ok('dap_wait_until_paused').status, dap.ok('dap_program_output').lines[1] })
  end)

  it('stops at exceptions from the start, with exception_filters', function()
    local path = dap.write('caught.py', 'try:\n    int("x")\nexcept ValueError:\n    pass\n')
    local answer = dap.run(path, { exception_filters = { 'raised' } })
    t.eq({ 'exception', '<module> (caught.py:2)' }, { answer.reason, answer.at })
  end)

  it('refuses invalid configurations with a reason, and starts nothing', function()
    local path = dap.write('short.py', 'print("over")\n')
    local whole = { type = 'python', request = 'launch', name = 'x', program = path }
    dap.dap().adapters.gone = { type = 'executable', command = '/nowhere/adapter' }
    dap.dap().adapters.silent = { type = 'server', port = 1 }
    for _, case in ipairs({
      { { type = 'pyhton' }, 'not_found', "no adapter 'pyhton'.*did you mean 'python'" },
      { { type = 'gone' }, 'not_found', '^type: .*/nowhere/adapter' },
      { { request = 'start' }, 'validation_error', 'request' },
      { { program = 'none.py' }, 'not_found', '^program: ' },
      { { cwd = 'none' }, 'not_found', '^cwd: .* /' },
      { { cwd = path }, 'not_found', '^cwd: ' },
      { { options = { args = { '${input:which}' } } }, 'validation_error', 'would ask the user for args' },
      { { configuration = 'None' }, 'not_found', "no 'None'; dap_configurations" },
      { { options = { python = { '/nowhere/python' } } }, 'tool_error', 'refused to launch: ' },
    }) do
      dap.fails(case[2], case[3], 'dap_run', vim.tbl_extend('force', whole, case[1]))
    end
    for _, field in ipairs({ 'type', 'request', 'name' }) do
      local args = vim.deepcopy(whole)
      args[field] = nil
      dap.fails('validation_error', field .. ': .*unless', 'dap_run', args)
    end
    t.wait(function()
      return next(dap.dap().sessions()) == nil
    end, 5000, 'the end of what was refused')
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
      on_exit = function(_, code)
        out.code = code
      end,
    })
    dap.dap().adapters.attached = { type = 'server', host = '127.0.0.1', port = port }
    local attach = { type = 'attached', request = 'attach', name = 'attach', port = port, wait_timeout_ms = 100 }
    local answer, err
    for _ = 1, 20 do -- until it listens
      answer, err = dap.call('dap_run', attach)
      if answer or out.code then
        break
      end
      t.matches('ended before the program began', err.message)
      vim.wait(200)
    end
    t.eq(nil, err)
    t.eq('still_running', answer.status)
    local point = dap.ok('dap_set_breakpoint', { filename = path, line = 3 })
    t.eq(true, point.verified)
    t.eq('<module> (waiting.py:3)', dap.ok('dap_wait_until_paused').at)
    dap.ok('dap_disconnect', { terminate_debuggee = false })
    t.eq(nil, out.code)
    dap.write('gate', '')
    t.wait(function()
      return out.code
    end, 10000, 'the end of the program')
    t.eq(0, out.code)
    vim.fn.jobstop(job)
  end)
end)

describe('approval', function()
  it('is required by all tools that run or change something, with a preview; the others only read', function()
    local path = dap.write('short.py', '')
    local args = { name = 'x', type = 'python', request = 'launch', program = path, line = 1, path = path, value = '1' }
    args.expression, args.condition, args.filters, args.terminate_debuggee = 'danger()', 'danger()', { 'raised' }, true
    dap.ok('dap_set_breakpoint', { path = args.program, line = 1 })
    local needs_none = {}
    for _, name in ipairs({ 'set_breakpoint', 'remove_breakpoint', 'clear_breakpoints', 'run', 'restart' }) do
      needs_none['dap_' .. name] = true
    end
    local asked, reads = 0, 0
    for _, file in ipairs(require('mcp-tools.loading.bundled').files('tools')) do
      local def = file.group == 'dap' and require(file.module)
      if def and def.annotations.read_only then
        reads = reads + 1
        t.eq(nil, def.needs_approval)
      elseif def then
        asked = asked + 1
        local reason = def.needs_approval
        reason = type(reason) == 'function' and reason(args) or reason
        t.eq('string', type(reason))
        local text, err = def.preview(args)
        t.eq(not needs_none[def.name], err ~= nil and err.message:find('^no active debug session') ~= nil)
        t.eq(needs_none[def.name] and 'string' or 'nil', type(text))
      end
      t.ok(not def or #def.description <= 300, file.name)
    end
    t.eq({ 16, 12 }, { asked, reads })
    local run = require('mcp-tools.tools.dap.run')
    t.matches('runs .*short.py under the debugger', run.needs_approval(args))
    t.matches('program = ".*/short.py"', run.preview(args))
    t.matches('request = "launch"', run.preview(args))
    t.eq(false, require('mcp-tools.tools.dap.exceptions').needs_approval({}))
    t.eq({}, core.get() and require('mcp-tools').report().failures)
  end)
end)
