-- slow
-- Variables in answers: names and values, bounded, without secrets.

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
local function by_name(answer)
  local map = {}
  for _, variable in ipairs(answer.variables or answer.locals) do
    map[variable.name] = variable
  end
  return map
end

describe('a stopped program', function()
  it('shows names, values and contents of variables, without secrets', function()
    dap.ok('dap_set_breakpoint', { filename = path, line = 16 })
    local stop = without_secrets(dap.run(path))
    t.ok(#vim.json.encode(stop) < 800, 'a stop with large values is ' .. #vim.json.encode(stop))
    local answer = without_secrets(dap.ok('dap_variables'))
    local map = by_name(answer)
    t.eq({ '2', 'int' }, { map.count.value, map.count.type })
    t.eq({ '[secret]', nil }, { map.secrets.value, map.secrets.variables_reference })
    t.eq({ '[secret]', 'None' }, { map.api_key.value, map.no_token.value })
    t.eq("'äöü'", map.umlaut.value)
    t.matches("'localhost'", map.settings.value)
    t.ok(vim.fn.strchars(map.long.value) <= 201)

    local names = without_secrets(dap.ok('dap_variables', { names_only = true }))
    t.eq(answer.total, #names.variables)
    t.eq(nil, by_name(names).count.value)
    local some = dap.ok('dap_variables', { names = { 'count', 'long' }, max_chars = 10000 })
    t.eq({ 2, '2' }, { some.total, by_name(some).count.value })
    t.ok(#by_name(some).long.value >= 5000)

    local fields = by_name(dap.ok('dap_variables', { variables_reference = map.box.variables_reference }))
    t.eq({ '4', "'box'" }, { fields.size.value, fields.label.value })
    local settings = dap.ok('dap_variables', { variables_reference = map.settings.variables_reference })
    without_secrets(settings)
    t.eq("'localhost'", by_name(settings)["'host'"].value)

    local page = dap.ok('dap_variables', { variables_reference = map.numbers.variables_reference, count = 10 })
    t.eq({ 10, 10 }, { #page.variables, page.next_start })
    local next_page = { variables_reference = map.numbers.variables_reference, start = page.next_start, count = 1 }
    t.matches('^.10 and', dap.ok('dap_variables', next_page).variables[1].value)
    local all = { variables_reference = map.numbers.variables_reference, max_chars = 1000 }
    local much = dap.ok('dap_variables', all)
    t.matches('names, count or max_chars', much.values_left_out)
    t.ok(#much.variables > 50 and #vim.json.encode(much) < 32 * 1024)

    local evaluated = without_secrets(dap.ok('dap_evaluate', { expression = 'secrets' }))
    t.eq({ '[secret]', nil }, { evaluated.result, evaluated.variables_reference })
    without_secrets(dap.ok('dap_evaluate', { expression = 'settings["db_password"]' }))
    without_secrets(dap.ok('dap_evaluate', { expression = 'bearer' }))
    without_secrets(dap.ok('dap_evaluate', { expression = 'locals()', max_chars = 20000 }))
    t.eq('2', dap.ok('dap_evaluate', { expression = 'len(secrets)' }).result)
    without_secrets(dap.ok('dap_snapshot'))
    without_secrets(dap.ok('dap_evaluate', { expression = 'print("password:", api_key)' }))
  end)

  it('withholds the contents of secrets, even for a guessed reference', function()
    dap.ok('dap_set_breakpoint', { filename = path, line = 16 })
    dap.run(path)
    -- debugpy numbers the variables of a scope in one go, whichever of them are shown.
    local shown = dap.ok('dap_variables', { names = { 'box' } }).variables[1].variables_reference
    local refused = 0
    for reference = math.max(1, shown - 20), shown + 20 do
      local answer, err = dap.call('dap_variables', { variables_reference = reference })
      without_secrets(answer or { err.message })
      refused = refused + (answer and 0 or 1)
    end
    t.ok(refused > 0)
    dap.fails('not_found', '^variables_reference', 'dap_variables', { variables_reference = 123456 })
    dap.fails('not_found', '', 'dap_set_variable', { variables_reference = 123456, name = 'first', value = '1' })
    without_secrets(dap.ok('dap_set_variable', { name = 'count', value = 'api_key' }))
  end)

  it('is shown by frames, scopes and as a whole', function()
    dap.ok('dap_set_breakpoint', { filename = path, line = 7 })
    dap.run(path)
    local snapshot = dap.ok('dap_snapshot', { context_lines = 1 })
    t.eq({ 'stopped', 'breakpoint', 'work (vars.py:7)' }, { snapshot.status, snapshot.reason, snapshot.at })
    t.eq(2, snapshot.total_frames)
    t.eq({ 'count', '2' }, { snapshot.locals[1].name, snapshot.locals[1].value })
    t.eq(3, #vim.split(snapshot.code, '\n'))
    local stack = dap.ok('dap_stacktrace')
    t.eq({ 'work', 'vars.py' }, { stack.stack_frames[1].name, stack.stack_frames[1].path })
    t.eq(7, stack.stack_frames[1].line)
    t.eq(1, #dap.ok('dap_stacktrace', { levels = 1, thread_id = stack.thread_id }).stack_frames)
    local outer = stack.stack_frames[2].id
    local scopes = dap.ok('dap_scopes', { frame_id = outer }).scopes
    t.eq('Locals', scopes[1].name)
    t.ok(by_name(dap.ok('dap_variables', { frame_id = outer }))['function variables'])
    t.ok(dap.ok('dap_variables', { variables_reference = scopes[1].variables_reference }).total > 0)
    t.eq('True', dap.ok('dap_evaluate', { expression = '"Box" in dir()', frame_id = outer }).result)
    t.eq({ true, 1 }, { dap.ok('dap_threads').threads[1].stopped, dap.ok('dap_threads').total })
    local here = dap.ok('dap_current_location', { context_lines = 0 })
    t.eq({ 'vars.py', 7, 'work' }, { here.location.file, here.location.line, here.location.function_name })
    t.eq('>7     box = Box()', here.code_context)
    local status = dap.ok('dap_status', { capabilities = true })
    t.eq({ true, 'stopped', 'python' }, { status.active, status.status, status.adapter_type })
    t.ok(vim.list_contains(status.capabilities, 'SetVariable'))
    local session = dap.ok('dap_sessions').sessions
    t.eq({ true, 'work (vars.py:7)' }, { session[#session].focused, session[#session].at })
  end)

  it('can be changed and evaluated, with errors and timeouts', function()
    dap.ok('dap_set_breakpoint', { filename = path, line = 16 })
    dap.run(path)
    local set = dap.ok('dap_set_variable', { name = 'count', value = '3 + 4' })
    t.eq({ 'count', '7', 'int' }, { set.name, set.value, set.type })
    t.eq('7', dap.ok('dap_evaluate', { expression = 'count' }).result)
    local box = by_name(dap.ok('dap_variables')).box.variables_reference
    t.eq('9', dap.ok('dap_set_variable', { name = 'size', value = '9', variables_reference = box }).value)
    t.eq('10', dap.ok('dap_set_variable', { name = 'box.size', value = 'box.size + 1' }).value)
    t.eq('10', dap.ok('dap_evaluate', { expression = 'box.size' }).result)
    without_secrets(dap.ok('dap_set_variable', { name = 'api_key', value = '"k3y-new"' }))
    t.eq('7', dap.ok('dap_set_variable', { name = 'count', value = 'nowhere' }).value) -- debugpy leaves it as it was
    dap.fails('tool_error', '', 'dap_set_variable', { name = 'nowhere.size', value = '1' })
    dap.fails('tool_error', "Evaluation failed: .*'nowhere' is not defined", 'dap_evaluate', { expression = 'nowhere' })
    local slow = { expression = '__import__("time").sleep(1)', timeout_ms = 100 }
    dap.fails('timeout', 'within 100 ms', 'dap_evaluate', slow)
    dap.fails('validation_error', '', 'dap_evaluate', { expression = '' })
    dap.fails('not_found', 'no debug session 99; dap_sessions', 'dap_variables', { session_id = 99 })
  end)
end)

describe('without a session', function()
  it('each tool that needs one reports what to do', function()
    local args = {
      evaluate = { expression = '1' },
      set_variable = { name = 'a', value = '1' },
      run_to = { filename = path, line = 1 },
    }
    for name in
      (
        'terminate disconnect continue step_over step_into step_out pause stacktrace scopes variables threads '
        .. 'current_location snapshot exceptions evaluate set_variable run_to'
      ):gmatch('%S+')
    do
      dap.fails('not_found', 'no active debug session', 'dap_' .. name, args[name])
    end
    t.eq(false, dap.ok('dap_status').active)
  end)
end)
