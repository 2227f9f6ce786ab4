-- A Python project under a real debugpy, and the tools that debug it.

local project = require('editor_project')
local t = require('helpers')

local M = { write = project.write, root = project.root }

local here = vim.fs.dirname(vim.uv.fs_realpath(debug.getinfo(1, 'S').source:sub(2)))
local top = vim.fs.dirname(vim.fs.dirname(vim.fs.dirname(here)))
M.python = top .. '/.deps/venv/bin/python'
M.is_real = vim.env.DAP_CLIENT ~= nil
vim.opt.runtimepath:prepend(vim.env.DAP_CLIENT or here .. '/dap_client')

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

--- Calls a tool as any host does; does not wait.
function M.start(name, args)
  local call = { ended = false }
  call.handle = require('mcp-tools').call(name, args or {}, function(result, err)
    call.result, call.err, call.ended = result, err, true
  end)
  return call
end

--- Calls a tool and waits for its end.
function M.call(name, args)
  local call = M.start(name, args)
  t.wait(function()
    return call.ended
  end, 20000, name)
  return call.result, call.err
end

--- The same for one that must not fail.
function M.ok(name, args)
  local result, err = M.call(name, args)
  t.eq(nil, err)
  return result
end

function M.dap()
  return require('dap')
end

function M.open()
  project.open()
  project.offer({ 'dap' })
  M.dap().adapters.python = { type = 'executable', command = M.python, args = { '-m', 'debugpy.adapter' } }
  M.dap().configurations.python = {}
end

function M.close()
  for _, session in pairs(vim.deepcopy(vim.tbl_keys(M.dap().sessions()))) do
    M.call('dap_terminate', { session_id = session })
  end
  t.wait(function()
    return next(M.dap().sessions()) == nil
  end, 10000, 'the end of the sessions')
  M.call('dap_clear_breakpoints')
  project.close()
end

--- Runs a program to its first stop.
function M.run(path, more)
  local args = { type = 'python', request = 'launch', name = 'test', program = path }
  return M.ok('dap_run', vim.tbl_extend('force', args, more or {}))
end

return M
