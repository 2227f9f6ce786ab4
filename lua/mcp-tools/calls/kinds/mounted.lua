--- Approval of resources, prompts and completions: those of mounted servers are decided on like their tools.

local source = require('mcp-tools.registry.source')

local M = {}

--- Decides on a call. The project's own resources and prompts only read, and check what they read themselves.
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

--- The URI that the mounted server has for a resource: ours without the scheme of the mount.
---@param uri string
---@return string
function M.own_uri(uri)
  return (uri:gsub('^[^:+]*%+', '', 1))
end

return M
