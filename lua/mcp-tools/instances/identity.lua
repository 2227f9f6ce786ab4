--- Port and token of a project. They are stored, so that a client is configured only once.

local config = require('mcp-tools.config')
local private_files = require('mcp-tools.files.private_json')
local log = require('mcp-tools.log')
local project = require('mcp-tools.instances.project')

local M = {}

-- Above the ports of common services, below the ephemeral ports (from 32768 on Linux, 49152 elsewhere) that the system
-- uses for outgoing connections.
local FIRST_PORT, PORTS = 20000, 12000
local TOKEN_BYTES = 32

---@class mcp-tools.bridge.Identity
---@field root string
---@field port integer the wanted one
---@field stored_port integer the wanted one without the option `bridge.port`
---@field token string 64 hex digits
---@field path string file with port and token
---@field had_client? boolean a client has connected before, so the bridge loads the MCP SDK at its start
---@field kept_from? integer port that a foreign process used when this token was made. That process does not know this
---  token, because the bridge has not served the port since

---@alias mcp-tools.bridge.Random fun(count: integer): string?, string? bytes, or nil and the error

---@param random? mcp-tools.bridge.Random
---@return string? token, string? err
local function new_token(random)
  -- There is no weaker fallback: a token that can be guessed is worse than no bridge.
  local ok, bytes, err = pcall(random or vim.uv.random, TOKEN_BYTES)
  if not ok or type(bytes) ~= 'string' or #bytes ~= TOKEN_BYTES then
    return nil, ('the system provides no random bytes for a token: %s'):format(err or bytes)
  end
  return vim.text.hexencode(bytes):lower()
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

--- Stores an identity. The option `bridge.port` overrides the port and is not stored.
---@param identity mcp-tools.bridge.Identity
---@param write? fun(path: string, value: table): boolean?, string?
---@return boolean? ok, string? err
local function store(identity, write)
  return (write or private_files.write)(identity.path, {
    root = identity.root,
    port = identity.stored_port,
    token = identity.token,
    kept_from = identity.kept_from,
    had_client = identity.had_client,
  })
end

--- Stores changes other than the token. Does nothing if another editor of the project has stored a new token. Keeps
--- what another editor has stored: that a client has connected, and that the bridge has served the port.
---@param identity mcp-tools.bridge.Identity
---@return boolean? ok, string? err
local function update(identity)
  local read = private_files.read(identity.path)
  local stored = read and read.value or {}
  if is_token(stored.token) and stored.token ~= identity.token then
    return true
  end
  local merged = vim.tbl_extend('force', {}, identity) --[[@as mcp-tools.bridge.Identity]]
  merged.kept_from = identity.kept_from == stored.kept_from and identity.kept_from or nil
  merged.had_client = identity.had_client or stored.had_client == true or nil
  return store(merged)
end

--- Returns port and token of a project; makes and stores them the first time.
---@param root string
---@param random? mcp-tools.bridge.Random source of the token; default: the system's
---@return mcp-tools.bridge.Identity? identity, string? err
function M.load(root, random)
  local digest = vim.fn.sha256(root)
  local dir = vim.fs.joinpath(project.state_dir(), 'projects')
  for _, directory in ipairs({ project.state_dir(), dir }) do
    local ok, err = private_files.ensure_dir(directory)
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
  local identity = { root = root, path = path, had_client = stored.had_client == true or nil }
  identity.stored_port = is_port(stored.port) and stored.port or FIRST_PORT + tonumber(digest:sub(1, 8), 16) % PORTS
  if is_token(stored.token) and not read.exposed then
    identity.token = stored.token
    identity.kept_from = is_port(stored.kept_from) and stored.kept_from or nil
  else
    if read.exposed then
      log.warn('%s was readable by other users: a new token is made', path)
    end
    identity.token, err = new_token(random)
    if not identity.token then
      return nil, err
    end
    local is_new = not read.value and not vim.uv.fs_lstat(path)
    local created
    created, err = store(identity, is_new and private_files.create or nil)
    if is_new and created == false then
      return M.load(root, random) -- another editor of this project was faster: its token applies
    elseif not created then
      return nil, err
    end
  end
  local chosen = config.get('bridge.port')
  identity.port = chosen ~= 0 and chosen or identity.stored_port
  log.hide(identity.token)
  return identity
end

--- Makes a new token for the project, because a foreign process may know the old one.
---@param identity mcp-tools.bridge.Identity changed in place
---@param port? integer of the foreign process
---@return boolean ok, string? err
function M.renew_token(identity, port)
  local token, err = new_token()
  if not token then
    return false, err
  end
  local ok, store_err = store(vim.tbl_extend('force', identity, { token = token, kept_from = port }))
  if not ok then
    return false, store_err
  end
  identity.token, identity.kept_from = token, port
  log.hide(token)
  return true
end

--- Watches for a new token made by another editor of the project.
---@param identity mcp-tools.bridge.Identity
---@param fn fun(token: string) called once, on the main loop
---@return fun() stop
function M.watch(identity, fn)
  local event = vim.uv.new_fs_event()
  local function stop()
    if event and not event:is_closing() then
      event:close()
    end
  end
  local function check()
    local read = event and not event:is_closing() and private_files.read(identity.path)
    local token = read and not read.exposed and read.value and read.value.token
    if is_token(token) and token ~= identity.token then
      stop()
      fn(token)
    end
  end
  if event then
    -- The file is replaced, never written to, so its directory is watched.
    event:start(vim.fs.dirname(identity.path), {}, function(err, name)
      if not err and (name == nil or name == vim.fs.basename(identity.path)) then
        vim.schedule(check)
      end
    end)
    vim.schedule(check) -- it may have changed between reading and watching
  end
  return stop
end

--- Handles that the bridge serves a port: clients now send the token there, so the port's next owner may know it.
---@param identity mcp-tools.bridge.Identity changed in place
---@param port integer
function M.served(identity, port)
  if identity.kept_from ~= port then
    return
  end
  identity.kept_from = nil
  local ok, err = update(identity)
  if not ok then
    log.warn('cannot store that port %d is in use by the bridge: %s', port, err)
  end
end

--- Stores that a client has connected.
---@param identity mcp-tools.bridge.Identity changed in place
function M.connected(identity)
  if identity.had_client then
    return
  end
  identity.had_client = true
  local ok, err = update(identity)
  if not ok then
    log.info('%s cannot be written: %s', identity.path, err)
  end
end

return M
