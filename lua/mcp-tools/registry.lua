--- Face of the registry for plugins written for guill/mcp-tools.nvim: its functions, on the registry of this editor
--- (registry/store.lua).

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
  core.get().registry:remove('tools', name) -- of those that the options name, too: they are loaded first
end

--- Every tool: name → `{ name, description, args }`.
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

--- The reply shapes that guill's callers know.
---@param call mcp-tools.Call
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

--- Runs a tool by hand. Poll with `get_result` when it is pending.
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

--- What a pending call has come to. The answer is repeated until it is forgotten, 5 minutes after the end.
---@param task_id string
---@return { done: boolean, result: any, error: string? }
function M.get_result(task_id)
  local call = core.get().executor:get(task_id)
  if not call then
    return { done = true, error = ('Unknown or expired task: %s'):format(tostring(task_id)) }
  end
  return reply(call)
end

--- Cancels a pending call; the tool is told.
---@param task_id string
---@return { cancelled: boolean } false when there was nothing to cancel
function M.cancel_task(task_id)
  return { cancelled = core.get().executor:cancel(task_id, 'user') }
end

---@return integer
function M.pending_count()
  return #core.get().executor:pending()
end

--- Takes out every tool.
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
