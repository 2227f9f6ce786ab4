local process = require('mcp-tools.editor.process')
local t = require('helpers')

--- Runs a program for a call that `cancel` ends.
local function run(command, opts)
  local hook, result
  process.run(
    {
      on_cancel = function(_, fn)
        hook = fn
      end,
    },
    command,
    vim.tbl_extend('force', { cwd = '/' }, opts or {}),
    function(got)
      result = got
    end
  )
  return function()
    return t.wait(function()
      return result
    end, 5000)
  end, hook
end

describe('a program', function()
  it('gives what it printed, in its folder', function()
    local result = run({ 'pwd' }, { cwd = '/usr' })()
    t.eq({ true, '/usr\n', 0, false }, { result.ok, result.stdout, result.code, result.cut })
  end)

  it('has our environment, without token and address of the editor', function()
    vim.env.MCP_AUTH_TOKEN = 'secret'
    vim.env.NVIM = '/some/socket'
    vim.env.SPEC_VALUE = 'a=b c'
    local text = run({ 'env' })().stdout
    vim.env.MCP_AUTH_TOKEN, vim.env.NVIM, vim.env.SPEC_VALUE = nil, nil, nil
    t.matches('SPEC_VALUE=a=b c\n', text)
    t.matches('PATH=', text)
    for _, name in ipairs({ 'MCP_AUTH_TOKEN', 'NVIM', 'NVIM_LISTEN_ADDRESS' }) do
      t.ok(not ('\n' .. text):find('\n' .. name .. '=', 1, true), name)
    end
  end)

  it('fails with what it said, or that it cannot be run', function()
    local result = run({ 'sh', '-c', 'echo no >&2; exit 3' })()
    t.eq({ false, 'no', 3, false }, { result.ok, result.fault, result.code, result.quiet })
    result = run({ 'sh', '-c', 'exit 1' })()
    t.eq({ 'sh ended with 1', true }, { result.fault, result.quiet })
    t.matches('no%-such%-program cannot be run', run({ 'no-such-program' })().fault)
  end)

  it('is ended when it takes too long or says too much', function()
    t.matches('sleep did not end within', run({ 'sleep', '20' }, { timeout = 100 })().fault)
    local result = run({ 'yes' }, { limit = 1000 })()
    t.eq({ true, true, 1000 }, { result.ok, result.cut, #result.stdout })
  end)

  it('is ended with its call', function()
    local wait, cancel = run({ 'sleep', '20' })
    cancel()
    t.eq(false, wait().ok)
  end)
end)
