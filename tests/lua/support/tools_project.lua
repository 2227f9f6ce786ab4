-- Tools, called as any host calls them, in a project of their own with a real git repository where one is wanted.

local config = require('mcp-tools.config')
local project = require('editor_project')
local t = require('helpers')

local M = {}

for _, name in ipairs({ 'close', 'commit', 'each', 'git', 'init', 'text', 'write' }) do
  M[name] = project[name]
end

M.base, M.root = project.base, project.root

M.checkout = t.CHECKOUT

---@param groups string[]
function M.open(groups)
  project.open()
  project.offer(groups)
end

--- Is a process gone, or about to be taken away by its new parent?
---@param pid integer|string
function M.gone(pid)
  local file = io.open('/proc/' .. pid .. '/stat')
  local state = file and file:read('*a'):match('^%d+ %b() (%a)')
  if file then
    file:close()
  end
  return not state or state == 'Z' or state == 'X'
end

--- Calls a tool for a client of the bridge.
---@param who { session: string?, client: table? }
---@return any result, string? code of the error
function M.call_for(who, name, args)
  local caller = vim.tbl_extend('error', who, { kind = 'tool', host = 'mcp' })
  local call = require('mcp-tools.core').get().executor:execute(name, args, caller)
  t.ended(call, 20000, name)
  return call.outcome.value, (call.outcome.error or {}).code
end

--- Whatever needs approval is refused from now on: there is nobody to ask.
---@param groups string[]
function M.refuse(groups)
  config.reset()
  config.setup({ tools = groups, approval = { timeout = 1000 } })
  require('mcp-tools.core').get()
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
    cancel = function() handle:cancel() end,
    wait = function(ms)
      t.wait(function() return ended end, ms or 30000, name)
      return result, err
    end,
  }
end

--- Calls a tool and waits for its end.
---@param name string
---@param args? table
---@param ms? integer
---@return any result, mcp-tools.Error? err
function M.call(name, args, ms) return M.start(name, args).wait(ms) end

--- The same for a call that has to succeed.
function M.ok(name, args, ms) return t.ok(M.call(name, args, ms)) end

--- The same for a call that has to fail.
---@param code string
---@param pattern string in its message
function M.fails(code, pattern, name, args) t.fails(code, pattern, M.call(name, args)) end

return M
