--- Checks the specs of mounts.

local suggest = require('mcp-tools.util.suggest')

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
---@field of_project? boolean a file of the project, which the user trusts, defines it
---@field foreign? boolean the file is also for other programs: `${NAME}` is a variable, too

local START_TIMEOUT = 60000
local ALLOW = { 'sampling', 'elicitation', 'roots' }
--- A name must not contain the separator of published names, and begins with a letter as a URI scheme does.
local NAME, MAX_NAME = '^%a[%w_-]*$', 24

---@param v any
---@return string?
local function text(v)
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
      return text(v) or v:find('%s') and not vim.uv.fs_stat(v) and 'contains spaces: pass a list with the arguments'
    end
    return texts(v) or (v[1] == nil or v[1] == '') and 'must begin with an executable' or nil
  end,
  args = texts,
  env = map,
  cwd = text,
  url = function(v)
    return text(v) or not v:find('^https?://[^%s/]') and 'must begin with http:// or https://' or nil
  end,
  headers = map,
  secrets = texts,
  allow = function(v)
    local fault = texts(v)
    for _, right in ipairs(fault and {} or v) do
      if not vim.list_contains(ALLOW, right) then
        local near = suggest(right, ALLOW)
        fault = ("'%s' must be one of %s"):format(right, table.concat(ALLOW, ', '))
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

--- Returns the form in which names must differ: URIs of resources and names of tools are made from it.
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
  local fields = vim.tbl_keys(spec)
  table.sort(fields, function(a, b)
    return tostring(a) < tostring(b)
  end)
  for _, field in ipairs(fields) do
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

return M
