-- A Python project under a real debugpy, and the tools that debug it.

local p = require('tools_project')
local t = require('helpers')

local M = vim.tbl_extend('error', p, { python = p.checkout .. '/.deps/venv/bin/python' })

vim.opt.runtimepath:prepend(vim.env.DAP_CLIENT or p.checkout .. '/tests/lua/support/dap_client')

M.LOOP = table.concat({
  '# A loop', -- 1
  '',
  'def total(numbers):', -- 3
  '    sum_ = 0',
  '    for n in numbers:', -- 5
  '        sum_ += n',
  '        print("add", n)', -- 7
  '    return sum_',
  '',
  'def main():', -- 10
  '    api_token = "hunter2-hunter2"',
  '    result = total([1, 2, 3])', -- 12
  '    print("total", result)',
  '    return result', -- 14
  '',
  'main()', -- 16
  '',
}, '\n')

function M.dap()
  return require('dap')
end

---@param groups? string[]
function M.open(groups)
  p.open(groups or { 'dap' })
  M.dap().adapters.python = { type = 'executable', command = M.python, args = { '-m', 'debugpy.adapter' } }
  M.dap().configurations.python = {}
end

function M.close()
  for _, session in ipairs(vim.tbl_keys(M.dap().sessions())) do
    p.call('dap_terminate', { session_id = session })
  end
  t.wait(function()
    return next(M.dap().sessions()) == nil
  end, 10000, 'the end of the sessions')
  p.call('dap_clear_breakpoints')
  p.close()
end

--- Runs a program to its first stop.
function M.run(path, more)
  local args = { type = 'python', request = 'launch', name = 'test', program = path }
  return M.ok('dap_run', vim.tbl_extend('force', args, more or {}))
end

return M
