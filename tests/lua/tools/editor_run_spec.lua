-- every Neovim
local calls = require('tool_calls')
local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local project = require('editor_project')
local t = require('helpers')

before_each(function()
  project.open()
  calls.offer({ 'editor_command', 'editor_eval_lua' })
end)

after_each(project.close)

describe('editor_command', function()
  it('gives what it printed, cut where it is too long', function()
    t.eq({ output = 'hello' }, calls.call('editor_command', { command = 'echo "hello"' }))
    local long = calls.call('editor_command', { command = 'echo repeat("ü", 500)', max_bytes = 101 })
    t.eq({ ('ü'):rep(50) .. '…', true }, { long.output, long.truncated })
    calls.call('editor_command', { command = 'let g:a = 1\nlet g:b = 2' })
    t.eq({ 1, 2 }, { vim.g.a, vim.g.b })
  end)

  it('gives errors as errors, and nothing of secrets', function()
    local err = calls.fails('editor_command', { command = 'nosuchcommand' })
    t.eq('tool_error', err.code)
    t.matches('E492', err.message)
    t.matches('%[secret%]', calls.call('editor_command', { command = 'echo "password=hunter2"' }).output)
  end)
end)

describe('editor_eval_lua', function()
  it('gives what it returned and printed', function()
    t.eq(
      { output = 'hi 1\ntwo', result = '3', type = 'number' },
      calls.call('editor_eval_lua', {
        code = 'print("hi", 1) print("two") local a, b = ... return a + b',
        args = { 1, 2 },
      })
    )
    t.eq({ result = 'text', type = 'string' }, calls.call('editor_eval_lua', { code = 'return "text"' }))
    t.eq({ result = '{"a":[1,2]}', type = 'table' }, calls.call('editor_eval_lua', { code = 'return {a={1,2}}' }))
    t.matches('<function 1>', calls.call('editor_eval_lua', { code = 'return {print}' }).result)
    t.eq({}, calls.call('editor_eval_lua', { code = 'local a' }))
    local long = calls.call('editor_eval_lua', { code = 'return ("x"):rep(1000)', max_bytes = 100 })
    t.eq({ ('x'):rep(100) .. '…', true }, { long.result, long.truncated })
  end)

  it('says what is wrong with the code, and what it threw', function()
    local err = calls.fails('editor_eval_lua', { code = 'return +' })
    t.eq('validation_error', err.code)
    t.matches('^code: code:1:', err.message)
    err = calls.fails('editor_eval_lua', { code = 'local x\nerror("boom")' })
    t.eq('tool_error', err.code)
    t.matches('code:2: boom', err.message)
    t.matches('nil', calls.fails('editor_eval_lua', { code = 'error()' }).message)
  end)

  it('gives nothing of secrets', function()
    vim.cmd('silent edit ' .. project.write('.env', 'SOME_OF_THE_ENV=abcdef\n'))
    local code = 'return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false))'
    local result = calls.call('editor_eval_lua', { code = code }).result
    t.ok(not result:find('abcdef', 1, true), result)
  end)
end)

describe('both', function()
  it('ask, whatever they are called with, and show what would run', function()
    config.setup({ approval = { rule = function() end } })
    for name, args in pairs({
      editor_command = { command = 'let g:ran = 1' },
      editor_eval_lua = { code = 'vim.g.ran = 1' },
    }) do
      t.eq('access_denied', calls.fails(name, args).code) -- nobody is there to be asked
      local _, text = next(args)
      t.ok(core.get().registry:find_tool(name).preview(args):find(text, 1, true))
    end
    t.eq(nil, vim.g.ran)
  end)

  it('exist only where their own name stands', function()
    config.reset()
    config.setup({ tools = { 'editor' } })
    local tools = core.get().registry
    for _, name in ipairs({ 'editor_command', 'editor_eval_lua' }) do
      t.eq(nil, tools:find_tool(name))
    end
    t.ok(tools:find_tool('editor_state'))
  end)
end)
