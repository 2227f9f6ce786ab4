--- Specs of mounts: checks them, and replaces variables such as `${env:NAME}` just before one is sent to the bridge.
---
--- Only variables that the mount lists are replaced: a file of the project must not read others. Variables are refused
--- on a command line, which other users can read.

local config = require('mcp-tools.config')
local log = require('mcp-tools.log')
local private_files = require('mcp-tools.files.private_json')
local project = require('mcp-tools.instances.project')
local source = require('mcp-tools.registry.source')
local suggest = require('mcp-tools.util.suggest')
local value_names = require('mcp-tools.schema.value').names

local M = {}

--- A checked spec.
---@class mcp-tools.Mount
---@field command? string[]
---@field env table<string, string>
---@field cwd? string
---@field url? string
---@field headers table<string, string>
---@field secrets string[]
---@field allow string[]
---@field timeout? integer ms
---@field start_timeout integer ms
---@field of_project? boolean defined in a file of the project that the user trusts
---@field foreign? boolean defined in a file that other programs also read: `${NAME}` is a variable, too

local START_TIMEOUT = 60000
local ALLOW = { 'sampling', 'elicitation', 'roots' }
--- A name must not contain the separator of published names, and begins with a letter as a URI scheme does.
local NAME, MAX_NAME = '^%a[%w_-]*$', 24

---@param v any
---@return string?
local function text_fault(v)
  return (type(v) ~= 'string' or not v:find('%S')) and 'must be a non-empty string'
    or v:find('%z') and 'must not contain a NUL byte'
    or nil
end

---@param v any
---@return string?
local function texts(v)
  if type(v) ~= 'table' or not vim.islist(v) then
    return 'must be a list of strings'
  end
  for i, item in ipairs(v) do
    if type(item) ~= 'string' or item:find('%z') then
      return ('[%d] must be a string'):format(i)
    end
  end
end

---@param v any
---@return string?
local function map(v)
  if type(v) ~= 'table' then
    return 'must map names to strings'
  end
  for key, value in pairs(v) do
    if type(key) ~= 'string' or key == '' then
      return 'must map names to strings'
    elseif type(value) ~= 'string' or value:find('[%z\r\n]') then
      return ('.%s must be a string without line breaks'):format(key)
    end
  end
end

---@param v any
---@return string?
local function milliseconds(v)
  return (type(v) ~= 'number' or v % 1 ~= 0 or v < 1) and 'must be a number of milliseconds, 1 or more' or nil
end

---@type table<string, fun(v: any): string?>
local RULES = {
  command = function(v)
    if type(v) == 'string' then
      return text_fault(v)
        or v:find('%s') and not vim.uv.fs_stat(v) and 'contains spaces: pass a list with the arguments'
    end
    return texts(v) or (v[1] == nil or v[1] == '') and 'must begin with an executable' or nil
  end,
  args = texts,
  env = map,
  cwd = text_fault,
  url = function(v)
    return text_fault(v) or not v:find('^https?://[^%s/]') and 'must begin with http:// or https://' or nil
  end,
  headers = map,
  secrets = texts,
  allow = function(v)
    local fault = texts(v)
    for _, capability in ipairs(fault and {} or v) do
      if not vim.list_contains(ALLOW, capability) then
        local near = suggest(capability, ALLOW)
        fault = ("'%s' must be one of %s"):format(capability, table.concat(ALLOW, ', '))
          .. (near and (', did you mean %s?'):format(near) or '')
      end
    end
    return fault
  end,
  timeout = milliseconds,
  start_timeout = milliseconds,
}

--- Returns why the name of a mount is invalid.
---@param name any
---@return string?
function M.name_fault(name)
  if type(name) ~= 'string' or not name:find(NAME) or #name > MAX_NAME or (name .. '_'):find('__', 1, true) then
    local rule = 'must begin with a letter and contain only letters, digits, - and single _, at most %d characters'
    return ("mount '%s': its name %s"):format(tostring(name), rule:format(MAX_NAME))
  end
end

--- Returns the form of a name that must be unique: URIs of resources and names of tools contain it.
---@param name string
---@return string
function M.folded(name)
  return (name:lower():gsub('_', '-'))
end

--- Checks a spec.
---@param name any
---@param spec any
---@return mcp-tools.Mount? mount
---@return string? faults one per line: `mount 'x': env.A must be …`
function M.check(name, spec)
  local faults = { M.name_fault(name) }
  local function add(format, ...)
    table.insert(faults, ("mount '%s': %s"):format(tostring(name), format:format(...)))
  end
  if type(spec) ~= 'table' then
    add('must be a table such as { command = { "executable" } } or { url = "https://…" }')
    return nil, table.concat(faults, '\n')
  end
  for _, field in ipairs(value_names(spec)) do
    local rule = RULES[field]
    local fault = rule and rule(spec[field])
    if not rule then
      local near = suggest(tostring(field), vim.tbl_keys(RULES))
      add("unknown field '%s'%s", tostring(field), near and (', did you mean %s?'):format(near) or '')
    elseif fault then
      add('%s%s%s', field, fault:find('^[%[.]') and '' or ' ', fault)
    end
  end
  if (spec.command == nil) == (spec.url == nil) then
    add('must have either command or url')
  end
  for _, field in ipairs(spec.url and { 'args', 'env', 'cwd' } or { 'headers' }) do
    if spec[field] ~= nil then
      add('%s cannot be used with %s', field, spec.url and 'url' or 'command')
    end
  end
  if #faults > 0 then
    return nil, table.concat(faults, '\n')
  end
  local command = type(spec.command) == 'string' and { spec.command } or spec.command
  return {
    command = command and vim.list_extend(vim.list_slice(command), spec.args or {}),
    env = vim.deepcopy(spec.env or {}),
    cwd = spec.cwd,
    url = spec.url,
    headers = vim.deepcopy(spec.headers or {}),
    secrets = vim.list_slice(spec.secrets or {}),
    allow = vim.list_slice(spec.allow or {}),
    timeout = spec.timeout,
    start_timeout = spec.start_timeout or START_TIMEOUT,
  }
end

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
    elseif not mount.of_project and source.is_project_file(cwd, project.root()) then
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
