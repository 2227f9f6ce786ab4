-- A Python project under a real debugpy, and the tools that debug it.

local p = require('tools_project')
local project = require('editor_project')
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

--- Returns the answer of a tool as clients get it.
function M.text(name, args) return t.ok(project.text(name, args)) end

function M.dap() return require('dap') end

---@param groups? string[]
function M.open(groups)
  p.open(groups or { 'debug' })
  package.loaded.dap = nil -- without the sessions of earlier tests
  M.dap().adapters.python = { type = 'executable', command = M.python, args = { '-m', 'debugpy.adapter' } }
  M.dap().configurations.python = {}
end

function M.close()
  for _, session in ipairs(vim.tbl_keys(M.dap().sessions())) do
    p.call('debug_step', { how = 'stop', session_id = session })
  end
  t.wait(function() return next(M.dap().sessions()) == nil end, 10000, 'the end of the sessions')
  p.call('debug_breakpoints', { clear = true })
  p.close()
end

--- Runs a program to its first stop.
---@param path string
---@param more? table
function M.run(path, more) return M.ok('debug_run', vim.tbl_extend('force', { program = path }, more or {})) end

---@param how string
---@param more? table
function M.step(how, more) return M.ok('debug_step', vim.tbl_extend('force', { how = how }, more or {})) end

--- Sets breakpoints in lines of a file.
---@param path string
function M.set(path, ...)
  local points = vim.tbl_map(function(line) return { path = path, line = line } end, { ... })
  return M.ok('debug_breakpoints', { set = points })
end

--- Returns the values of expressions.
function M.values(...)
  return vim.tbl_map(
    function(value) return value.value or value.error end,
    M.ok('debug_inspect', { expressions = { ... } }).values
  )
end

return M
