--- Endpoints: how the bridge is to let the agents of companions in, each with a token of its own.

local instances = require('mcp-tools.instances.file')
local log = require('mcp-tools.log')
local private_files = require('mcp-tools.files.private_json')
local project = require('mcp-tools.instances.project')

local uv = vim.uv

local M = {}

--- The paths of sockets are shorter than others: 108 bytes with the last one on Linux, 104 elsewhere.
local MAX_SOCKET = 103

--- The token of a companion: as lasting as that of the bridge, from which it is made, and no way back to it.
---@param token string of the bridge
---@param name string
---@return string
function M.token(token, name)
  local own = vim.fn.sha256(token .. vim.fn.sha256(token .. ' companion ' .. name))
  log.hide(own)
  return own
end

--- Where the socket of a companion lies: beside the instance files, or where that is too long a path, in a folder of
--- ours among the temporary ones.
---@param name string
---@return string? path
---@return string? fault
function M.socket(name)
  local file = ('%d-%s.sock'):format(uv.os_getpid(), name)
  local folders = { instances.dir(), ('%s/mcp-tools-%d'):format(uv.os_tmpdir(), uv.getuid and uv.getuid() or 0) }
  for _, folder in ipairs(folders) do
    local path = vim.fs.joinpath(folder, file)
    if #path <= MAX_SOCKET then
      local ok, fault = private_files.ensure_dir(folder)
      return ok and path or nil, fault
    end
  end
  return nil, ('the path of its socket would be too long: %s'):format(vim.fs.joinpath(folders[2], file))
end

--- The endpoint of a companion as the bridge is told of it.
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

---@param companion mcp-tools.Companion
---@param token string of the bridge
---@return mcp-tools.agents.Endpoint? endpoint
---@return string? fault
function M.of(companion, token)
  local endpoint = companion.endpoint
  local socket, fault
  if endpoint.transport == 'unix' then
    socket, fault = M.socket(companion.name)
    if not socket then
      return nil, fault
    end
  end
  local server = endpoint.server or {}
  return {
    name = companion.name,
    token = M.token(token, companion.name),
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
    label = companion.label,
  }
end

return M
