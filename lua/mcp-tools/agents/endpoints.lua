--- The endpoints that the bridge opens for agents, each with its own token.

local instances = require('mcp-tools.instances.file')
local log = require('mcp-tools.log')
local private_files = require('mcp-tools.files.private_json')
local project = require('mcp-tools.instances.project')

local uv = vim.uv

local M = {}

--- Maximum length of a socket's path in bytes: `sun_path` has 104 bytes with the final zero, on Linux 108.
local MAX_SOCKET = 103

--- Derives an agent's token from that of the bridge. It is as stable as that one, and does not reveal it.
---@param token string of the bridge
---@param name string
---@return string
function M.token(token, name)
  local own = vim.fn.sha256(token .. vim.fn.sha256(token .. ' agent ' .. name))
  log.hide(own)
  return own
end

--- Finds the path of an agent's socket: next to the instance files, or in a temporary directory if that path is too
--- long.
---@param name string
---@return string? path
---@return string? fault
function M.socket(name)
  local file = ('%d-%s.sock'):format(uv.os_getpid(), name)
  local directories = { instances.dir(), ('%s/mcp-tools-%d'):format(uv.os_tmpdir(), uv.getuid and uv.getuid() or 0) }
  for _, directory in ipairs(directories) do
    local path = vim.fs.joinpath(directory, file)
    if #path <= MAX_SOCKET then
      local ok, fault = private_files.ensure_dir(directory)
      return ok and path or nil, fault
    end
  end
  return nil, ('socket path too long: %s'):format(vim.fs.joinpath(directories[2], file))
end

--- An endpoint as sent to the bridge.
---@class mcp-tools.agents.Endpoint
---@field name string
---@field token string
---@field transport 'http'|'websocket'|'unix'
---@field header string
---@field scheme string?
---@field subprotocol string?
---@field server { name: string, version: string, title: string? }
---@field socket string?
---@field label string?

---@param agent mcp-tools.Agent
---@param token string of the bridge
---@return mcp-tools.agents.Endpoint? endpoint
---@return string? fault
function M.of(agent, token)
  local endpoint = agent.endpoint
  local socket, fault
  if endpoint.transport == 'unix' then
    socket, fault = M.socket(agent.name)
    if not socket then
      return nil, fault
    end
  end
  local server = endpoint.server or {}
  return {
    name = agent.name,
    token = M.token(token, agent.name),
    transport = endpoint.transport,
    header = (endpoint.header or 'authorization'):lower(),
    scheme = endpoint.scheme,
    subprotocol = endpoint.subprotocol,
    server = {
      name = server.name or 'mcp-tools.nvim',
      version = server.version or project.VERSION,
      title = server.title,
    },
    socket = socket,
    label = agent.label,
  }
end

return M
