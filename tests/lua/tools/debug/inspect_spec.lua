-- slow
-- Variables in results: names and values, limited, without secrets.

local dap = require('dap_project')
local t = require('helpers')

local PROGRAM = table.concat({
  'class Box:', -- 1
  '    def __init__(self):',
  '        self.size = 4', -- 3
  '        self.label = "box"',
  '', -- 5
  'def work(count):',
  '    box = Box()', -- 7
  '    api_key = "k3y-k3y-k3y-k3y"',
  '    secrets = {"first": "pa55-pa55", "second": "w0rd-w0rd"}', -- 9
  '    settings = {"db_password": "pa55w0rd-pa55w0rd", "host": "localhost"}',
  '    bearer = "ghp_0123456789abcdefghij0123456789"', -- 11
  '    no_token = None',
  '    long = "x" * 5000', -- 13
  '    numbers = [str(i) + " and " + "y" * 300 for i in range(3000)]',
  '    umlaut = "äöü"', -- 15
  '    return box, settings',
  '', -- 17
  'work(2)',
  '',
}, '\n')

local path
before_each(function()
  dap.open()
  path = dap.write('vars.py', PROGRAM)
end)
after_each(dap.close)

local SECRETS = { 'k3y', 'pa55', 'w0rd', 'ghp_' }

local function without_secrets(answer)
  local text = vim.json.encode(answer)
  for _, secret in ipairs(SECRETS) do
    t.ok(not text:find(secret, 1, true), secret .. ' is in ' .. text)
  end
  return answer
end

---@return table<string, table>
local function by_name(list)
  local map = {}
  for _, variable in ipairs(list) do
    map[variable.name] = variable
  end
  return map
end

--- Runs the program to a line.
local function run_to(line) return dap.run(path, { breakpoints = { { path = path, line = line } } }) end

describe('a stopped program', function()
  it('shows names, values and contents of variables, without secrets', function()
    local stop = without_secrets(run_to(16))
    t.ok(#vim.json.encode(stop) < 800, 'a stop with large values is ' .. #vim.json.encode(stop))
    local map = by_name(without_secrets(dap.ok('debug_inspect')).locals)
    t.eq({ '2', 'int' }, { map.count.value, map.count.type })
    t.eq({ '[secret]', '[secret]', 'None' }, { map.secrets.value, map.api_key.value, map.no_token.value })
    t.eq("'äöü'", map.umlaut.value)
    t.matches("'localhost'", map.settings.value)
    t.ok(vim.fn.strchars(map.long.value) <= 201)

    local values = without_secrets(dap.ok('debug_inspect', {
      expressions = { 'box', 'settings', 'secrets', 'settings["db_password"]', 'bearer', 'locals()', 'len(secrets)' },
    })).values
    local fields = by_name(values[1].fields)
    t.eq({ '4', "'box'" }, { fields.size.value, fields.label.value })
    t.eq("'localhost'", by_name(values[2].fields)["'host'"].value)
    t.eq({ '[secret]', nil, '[secret]' }, { values[3].value, values[3].fields, values[4].value })
    t.eq('2', values[7].value)
    local numbers = dap.ok('debug_inspect', { expressions = { 'numbers' } }).values[1]
    t.eq(20, #numbers.fields)
    t.ok(numbers.more_fields > 0)
    local printed = without_secrets(dap.ok('debug_inspect', { expressions = { 'print("password:", api_key)' } }))
    t.ok(printed.values[1])
    without_secrets({ (dap.text('debug_inspect')) })
  end)

  it('is shown by frames, with stack and threads', function()
    run_to(7)
    local here = dap.ok('debug_inspect')
    t.eq({ 'stopped', 'breakpoint', 'work (vars.py:7)' }, { here.status, here.reason, here.at })
    t.eq({ '0 work (vars.py:7)', '1 <module> (vars.py:18)' }, here.stack)
    t.eq({ 'count', '2' }, { here.locals[1].name, here.locals[1].value })
    t.matches('\n>%s?7     box = Box%(%)\n', here.code)
    local outer = dap.ok('debug_inspect', { frame = 1 })
    t.eq('<module> (vars.py:18)', outer.at)
    t.eq('True', dap.ok('debug_inspect', { frame = 1, expressions = { '"Box" in dir()' } }).values[1].value)
    dap.fails('validation_error', 'no frame 9; the stack has 2', 'debug_inspect', { frame = 9 })
  end)

  it('can be changed and evaluated, with errors', function()
    run_to(16)
    t.eq({ '', '7' }, dap.values('count = 3 + 4', 'count'))
    t.eq({ '', '9' }, dap.values('box.size = 9', 'box.size'))
    without_secrets(dap.values('count = api_key', 'api_key'))
    local values = dap.values('nowhere', '1 + 1')
    t.matches("'nowhere' is not defined", values[1])
    t.eq('2', values[2])
    dap.fails('validation_error', '', 'debug_inspect', { expressions = { '' } })
    dap.fails('not_found', 'no debug session 99', 'debug_inspect', { session_id = 99 })
  end)
end)

it('without a session the tools tell what to do', function()
  dap.fails('not_found', 'no active debug session', 'debug_step', { how = 'wait' })
  t.matches('no program is under the debugger; debug_run', dap.text('debug_inspect'))
end)
