--- The registry API of guill/mcp-tools.nvim, for plugins written for it.

local core = require('mcp-tools.core')
local results = require('mcp-tools.calls.result')

local M = {}

--- Registers a tool; see `require('mcp-tools').register`.
---@param def mcp-tools.Tool
function M.register(def)
  core.registry():add_or_throw('tools', def)
end

---@param name string
function M.unregister(name)
  core.get().registry:remove('tools', name) -- `get` loads requested definitions first, so that they can be removed, too
end

--- Returns every tool: name → `{ name, description, args }`.
---@return table<string, { name: string, description: string, args: table? }>
function M.list()
  local list = {}
  for _, tool in ipairs(core.get().registry:list('tools')) do
    list[tool.name] = { name = tool.name, description = tool.description, args = tool.args }
  end
  return list
end

---@param name string
---@return table? definition
function M.get(name)
  return core.get().registry:get(name)
end

---@param name string
---@return boolean
function M.has(name)
  return core.get().registry:get(name) ~= nil
end

---@return integer
function M.count()
  return #core.get().registry:list('tools')
end

--- Returns a reply in guill's format.
---@param call mcp-tools.Call
---@return table
local function reply(call)
  if not call:ended() then
    return { done = false }
  end
  local outcome = call.outcome
  if outcome.error then
    return { done = true, error = outcome.error.message }
  end
  return { done = true, result = results.value_of(outcome) }
end

--- Calls a tool. If the reply is pending, poll with `get_result`.
---@param name string
---@param args? table
---@return { done: true, result: any, error: string? }|{ pending: true, task_id: string, timeout: integer }
function M.execute(name, args)
  local executor = core.get().executor
  local call = executor:execute(name, vim.deepcopy(args), { host = 'nvim', keep = true })
  if call:ended() then
    executor:acknowledge({ call.id })
    return reply(call)
  end
  return { pending = true, task_id = call.id, timeout = call.timeout }
end

--- Returns the result of a pending call. It is kept for 5 minutes after the end.
---@param task_id string
---@return { done: boolean, result: any, error: string? }
function M.get_result(task_id)
  local call = core.get().executor:get(task_id)
  if not call then
    return { done = true, error = ('Unknown or expired task: %s'):format(tostring(task_id)) }
  end
  return reply(call)
end

--- Cancels a pending call and runs its cancel hooks.
---@param task_id string
---@return { cancelled: boolean } false if there was nothing to cancel
function M.cancel_task(task_id)
  return { cancelled = core.get().executor:cancel(task_id, 'user') }
end

---@return integer
function M.pending_count()
  return #core.get().executor:pending()
end

--- Removes every tool.
function M.clear()
  core.get().registry:clear('tools')
end

--- Cancels every pending call.
function M.clear_pending()
  core.get().executor:cancel_where(function()
    return true
  end, 'user')
end

return M
