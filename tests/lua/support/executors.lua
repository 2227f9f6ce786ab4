-- An executor of its own over an empty registry, in which tools run without a question.

local Executor = require('mcp-tools.calls.executor')
local Registry = require('mcp-tools.registry.store')

local M = {}

local SETTINGS = { tool_timeout = 5000, max_calls = 8, max_result = 1000, max_resource = 1000, result_ttl = 300000 }

--- Lets everything through.
local GATEWAY = { decide = function(_, _, answer) answer(true) end }

---@param settings? table over those above
---@param gateway? table in place of that one
---@param root? fun(): string
---@return mcp-tools.Executor
---@return mcp-tools.Registry registry without a prefix
function M.new(settings, gateway, root)
  local registry = Registry.new({ prefix = function() return '' end })
  local all = vim.tbl_extend('force', SETTINGS, settings or {})
  local executor = Executor.new({
    registry = registry,
    gateway = gateway or GATEWAY,
    root = root,
    settings = function() return all end,
  })
  return executor, registry
end

return M
