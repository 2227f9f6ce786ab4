-- Tools, called as any host calls them, in a project of their own with a real git repository where one is wanted.

local project = require('editor_project')
local t = require('helpers')

local M = { write = project.write, close = project.close }

M.base, M.root = project.base, project.root

--- Where the checkout is, with the programs in its `.deps`.
local here = vim.fs.dirname(vim.uv.fs_realpath(debug.getinfo(1, 'S').source:sub(2)))
M.checkout = vim.fs.dirname(vim.fs.dirname(vim.fs.dirname(here)))

---@param groups string[]
function M.open(groups)
  project.open()
  project.offer(groups)
end

function M.git(...)
  local command = { 'git', '-c', 'user.name=A Person', '-c', 'user.email=a@example.org', ... }
  local done = vim.system(command, { cwd = M.root }):wait()
  assert(done.code == 0, done.stderr)
  return vim.trim(done.stdout)
end

--- An empty repository in place of the folder that only looks like one.
function M.init()
  vim.fn.delete(M.root .. '/.git', 'rf')
  M.git('init', '-q', '-b', 'main')
end

---@param message string
function M.commit(message)
  M.git('add', '-A')
  M.git('commit', '-q', '-m', message)
end

--- Starts a call. `wait` gives its result and error, `cancel` ends it.
---@param name string
---@param args? table
---@param opts? table as for `call()`
function M.start(name, args, opts)
  local result, err, ended
  local handle = require('mcp-tools').call(name, args or {}, opts or {}, function(...)
    result, err = ...
    ended = true
  end)
  return {
    cancel = function()
      handle:cancel()
    end,
    wait = function(ms)
      t.wait(function()
        return ended
      end, ms or 15000, name)
      return result, err
    end,
  }
end

--- Calls a tool and waits for its end.
---@param name string
---@param args? table
---@param ms? integer
---@return any result, mcp-tools.Error? err
function M.call(name, args, ms)
  return M.start(name, args).wait(ms)
end

--- The same for a call that has to succeed.
function M.ok(name, args, ms)
  local result, err = M.call(name, args, ms)
  t.eq(nil, err)
  return result
end

--- The same for a call that has to fail.
---@param code string
---@param pattern string in its message
function M.fails(code, pattern, name, args)
  local result, err = M.call(name, args)
  t.eq(nil, result)
  t.eq(code, err.code)
  t.matches(pattern, err.message)
end

return M
