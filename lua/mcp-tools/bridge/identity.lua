-- Receives the root of a project. Sends the port and token that stay the same for it.
-- Does not know about processes. A client configured once goes on working because of this file.

local config = require('mcp-tools.config')
local private_files = require('mcp-tools.files.private')
local log = require('mcp-tools.log')
local project = require('mcp-tools.files.project')

local M = {}

-- Above the ports that services claim by habit, below the ephemeral ones (32768 on Linux, 49152 elsewhere), which the
-- system hands to outgoing connections.
local FIRST_PORT, PORTS = 20000, 12000
local TOKEN_BYTES = 32

---@class mcp-tools.bridge.Identity
---@field root string
---@field port integer the wanted one
---@field token string 64 hex digits
---@field path string where port and token are kept

---@alias mcp-tools.bridge.Random fun(count: integer): string?, string? bytes or nil and why

---@param random? mcp-tools.bridge.Random
---@return string? token, string? err
local function new_token(random)
  -- No weaker source when this one fails: a token that can be guessed is worse than no bridge.
  local ok, bytes, err = pcall(random or vim.uv.random, TOKEN_BYTES)
  if not ok or type(bytes) ~= 'string' or #bytes ~= TOKEN_BYTES then
    return nil, ('the system gives no random bytes (%s); without them there is no safe token'):format(err or bytes)
  end
  return (bytes:gsub('.', function(c)
    return ('%02x'):format(c:byte())
  end))
end

---@param root string
---@return string
local function hash(root)
  return vim.fn.sha256(root)
end

---@param value any
---@return boolean
local function is_token(value)
  return type(value) == 'string' and #value == TOKEN_BYTES * 2 and not value:find('[^%x]')
end

---@param value any
---@return boolean
local function is_port(value)
  return type(value) == 'number' and value % 1 == 0 and value > 0 and value < 65536
end

---@param identity mcp-tools.bridge.Identity
---@return table
local function record(identity)
  return { root = identity.root, port = identity.port, token = identity.token }
end

--- Port and token of a project, made and stored when it has none yet.
---@param root string
---@param random? mcp-tools.bridge.Random source of the token; default: the system's
---@return mcp-tools.bridge.Identity? identity, string? err
function M.load(root, random)
  local digest = hash(root)
  local dir = vim.fs.joinpath(project.state_dir(), 'projects')
  for _, folder in ipairs({ project.state_dir(), dir }) do
    local ok, err = private_files.ensure_dir(folder)
    if not ok then
      return nil, err
    end
  end
  local path = vim.fs.joinpath(dir, digest:sub(1, 32) .. '.json')

  local read, err = private_files.read(path)
  if not read then
    return nil, err
  end
  local stored = read.value or {}
  local identity = { root = root, path = path }
  identity.port = is_port(stored.port) and stored.port or FIRST_PORT + tonumber(digest:sub(1, 8), 16) % PORTS
  if is_token(stored.token) and not read.exposed then
    identity.token = stored.token
  else
    if read.exposed then
      log.warn('%s could be read by other users: a new token is made', path)
    end
    identity.token, err = new_token(random)
    if not identity.token then
      return nil, err
    end
    local created
    if read.value or vim.uv.fs_lstat(path) then
      created, err = private_files.write(path, record(identity))
    else
      created, err = private_files.create(path, record(identity))
      if created == false then
        return M.load(root, random) -- another editor of this project was quicker: its token counts
      end
    end
    if not created then
      return nil, err
    end
  end
  local chosen = config.get('bridge.port')
  if chosen ~= 0 then
    identity.port = chosen
  end
  log.hide(identity.token)
  return identity
end

--- A new token for the project, because the old one may have been given to a stranger.
---@param identity mcp-tools.bridge.Identity changed in place
---@return boolean ok, string? err
function M.renew_token(identity)
  local token, err = new_token()
  if not token then
    return false, err
  end
  local read = private_files.read(identity.path)
  local port = read and read.value and is_port(read.value.port) and read.value.port or identity.port
  local ok
  ok, err = private_files.write(identity.path, { root = identity.root, port = port, token = token })
  if not ok then
    return false, err
  end
  identity.token = token
  log.hide(token)
  return true
end

return M
