--- Approval of resources, prompts and completions: those of mounted servers need it, as their tools do.

local source = require('mcp-tools.registry.source')

local M = {}

--- Decides on a call. Other resources and prompts only read, and check access to files themselves.
---@param gateway mcp-tools.Gateway
---@param call mcp-tools.Call
---@param answer fun(allowed: boolean, err: mcp-tools.Error?)
function M.decide(gateway, call, answer)
  if source.is_mounted(call.definition) then
    gateway:decide(call, answer)
  else
    answer(true)
  end
end

--- Returns the mounted server's own URI of a resource, without the mount's prefix.
---@param uri string
---@return string
function M.own_uri(uri)
  return (uri:gsub('^[^:+]*%+', '', 1))
end

return M
