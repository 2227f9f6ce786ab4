--- Replaces variables such as `${env:NAME}` in a mount's spec, just before it is sent to the bridge.
---
--- Only variables that the mount lists are replaced: a file of the project must not read others. Variables are refused
--- on a command line, which other users can read.

local config = require('mcp-tools.config')
local log = require('mcp-tools.log')
local private_files = require('mcp-tools.files.private_json')
local project = require('mcp-tools.instances.project')
local source = require('mcp-tools.registry.source')

local M = {}

--- Minimum length in bytes of a secret that is hidden in texts; a shorter one would hide too much.
local MIN_SECRET = 8
--- Parts of names of variables and headers that hold secrets.
local PRIVATE = { 'key', 'token', 'secret', 'pass', 'auth', 'credential', 'cookie' }

---@param name string
---@return boolean
local function is_private(name)
  name = name:lower()
  return vim.iter(PRIVATE):any(function(part)
    return name:find(part, 1, true) ~= nil
  end)
end

--- Replaces the variables in a text.
---@param text string
---@param mount mcp-tools.Mount
---@return string text
---@return string[] values that were inserted
---@return string? fault
local function expand(text, mount)
  local fault, values = nil, {}
  local function value_of(name, default)
    local value = vim.env[name]
    if not vim.list_contains(mount.secrets, name) then
      if default then
        return default
      end
      fault = fault or ("uses the variable %s, which is not listed: secrets = { '%s' }"):format(name, name)
      return ''
    elseif not value or value == '' then
      if not default then
        fault = fault or ('uses the variable %s, which is not set'):format(name)
      end
      return default or ''
    end
    table.insert(values, value)
    return value
  end
  -- In one pass: a variable in a value is not replaced.
  local head, tail = text:match('^(.*})(.*)$')
  if not head then
    return text, values, fault
  end
  text = head:gsub('%${([^}]*)}', function(inside) -- bounded: each `${` is followed by a `}`
    local name, default = inside:match('^env:([%w_]+)$'), nil
    if not name and mount.foreign then
      name = inside:match('^[%a_][%w_]*$')
      if not name then
        name, default = inside:match('^([%a_][%w_]*):%-(.*)$')
      end
    end
    return name and value_of(name, default) -- nil leaves the text unchanged
  end) .. tail
  return text, values, fault
end

---@param text string
---@param foreign boolean?
local function has_variable(text, foreign)
  return text:find('%${env:') ~= nil or foreign and text:find('%${[%a_]') ~= nil
end

--- Returns the directory in which the server's process runs. A server from the user's configuration has a private one:
--- in the project `npx`, `uvx` and `python -m` would run the project's code with the mount's secrets.
---@param name string
---@param mount mcp-tools.Mount
---@return string? path
---@return string? fault
local function directory(name, mount)
  if mount.cwd then
    local cwd = vim.fs.normalize(mount.cwd, { expand_env = false }) -- a variable must be listed
    return cwd:sub(1, 1) == '/' and cwd or vim.fs.normalize(vim.fs.joinpath(project.root(), cwd))
  elseif mount.of_project then
    return project.root()
  end
  local path = project.state_dir()
  for _, part in ipairs({ '', 'mounts', name }) do
    path = part == '' and path or vim.fs.joinpath(path, part)
    local ok, fault = private_files.ensure_dir(path)
    if not ok then
      return nil, fault
    end
  end
  return path
end

--- Returns a mount as it is sent to the bridge.
---@param name string
---@param mount mcp-tools.Mount
---@param generation integer
---@return table? resolved
---@return string? fault
function M.resolve(name, mount, generation)
  local hidden, faults = {}, {}
  local function hide(value)
    if #value >= MIN_SECRET and not vim.list_contains(hidden, value) then
      table.insert(hidden, value)
    end
  end
  local function filled(field)
    local out = vim.empty_dict()
    for key, text in vim.spairs(mount[field]) do
      local value, values, fault = expand(text, mount)
      if fault then
        table.insert(faults, ("mount '%s': %s.%s %s"):format(name, field, key, fault))
      end
      vim.iter(values):each(hide)
      if is_private(key) or (field == 'headers' and #values > 0) then
        hide(value)
        hide(value:match('^%a+ +(.+)$') or '') -- "Bearer …"
      end
      out[key] = value
    end
    return out
  end
  local env, headers = filled('env'), filled('headers')
  for _, part in ipairs(mount.command or {}) do
    if has_variable(part, mount.foreign) then
      local text = "mount '%s': %s: variables are not allowed in command or args, which other users can read; use env"
      table.insert(faults, text:format(name, part))
    end
  end
  local url = mount.url
  if url then
    local values, fault
    url, values, fault = expand(url, mount)
    if fault then
      table.insert(faults, ("mount '%s': url %s"):format(name, fault))
    end
    vim.iter(values):each(hide)
    hide(url:match('^%a+://([^/@]*)@') or '')
    hide(url:match('%?(.*)$') or '')
  end
  if #faults > 0 then
    return nil, table.concat(faults, '\n')
  end
  vim.iter(hidden):each(log.hide)
  -- Longest first: one may contain another.
  table.sort(hidden, function(a, b)
    return #a > #b
  end)
  local cwd, fault
  if mount.command then
    cwd, fault = directory(name, mount)
    if not cwd then
      return nil, fault
    elseif not mount.of_project and source.lies_in(cwd, project.root()) then
      env.PYTHONSAFEPATH = env.PYTHONSAFEPATH or '1' -- `python -m` must not import the project's modules
    end
  end
  return {
    name = name,
    command = mount.command,
    env = env,
    cwd = cwd,
    url = url,
    headers = headers,
    allow = mount.allow,
    timeout = mount.timeout,
    start_timeout = mount.start_timeout,
    root = project.root(),
    limit = config.get().limits.tool_result,
    secrets = hidden,
    generation = generation,
  }
end

return M
