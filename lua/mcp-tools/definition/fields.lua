--- The fields of a tool definition: what each must be.
---
--- Receives: a definition as a plugin wrote it.
--- Sends: faults (the definition cannot be used) and lint (it can, but should be changed), as `{field, message}`.
--- Does not know about: what stands inside schemas (definition.lua asks schema.lua).

local faults_of = require('mcp-tools.schema.faults')
local nearest = require('mcp-tools.nearest')
local utf8 = require('mcp-tools.utf8')
local value = require('mcp-tools.schema.value')

local M = {}

--- Names beyond these are cut, renamed or dropped by some clients.
local MAX_NAME = 40
--- Some clients cut descriptions here.
local MAX_DESCRIPTION = 4096

--- Our names of the hints → MCP's.
M.HINTS = {
  read_only = 'readOnlyHint',
  destructive = 'destructiveHint',
  idempotent = 'idempotentHint',
  open_world = 'openWorldHint',
}

local function text(v)
  if type(v) ~= 'string' then
    return 'must be a string'
  elseif utf8.invalid_at(v) then
    return 'is not UTF-8'
  end
end

local function filled_text(v)
  return text(v) or (not v:find('%S') and 'must not be empty') or nil
end

local function of_type(...)
  local kinds = { ... }
  return function(v)
    if not vim.tbl_contains(kinds, type(v)) then
      return 'must be a ' .. table.concat(kinds, ' or a ')
    end
  end
end

--- What each field must be: a function that says why a value is wrong.
---@type table<string, fun(v: any): string?>
local RULES = {
  name = filled_text,
  title = text,
  description = filled_text,
  args = of_type('table'),
  input_schema = of_type('table'),
  output_schema = of_type('table'),
  annotations = of_type('table'),
  timeout = function(v)
    if type(v) ~= 'number' or v ~= v or v < 0 or v == math.huge then
      return 'must be a number of milliseconds, 0 or more (0 = none)'
    end
  end,
  needs_approval = of_type('boolean', 'function', 'string'),
  preview = of_type('function'),
  state = of_type('function'),
  hosts = of_type('table'),
  execute = of_type('function'),
  run = of_type('function'),
  recommended = of_type('boolean'),
}

local REQUIRED = { 'name', 'description' }

---@param def table
---@param out { faults: mcp-tools.Fault[], lint: mcp-tools.Fault[] }
local function check_name(def, out)
  if type(def.name) ~= 'string' then
    return
  end
  if #def.name > MAX_NAME then
    table.insert(out.lint, { field = 'name', message = ('longer than %d characters'):format(MAX_NAME) })
  end
  if not def.name:find('^[%w_]+$') then
    local message = 'has characters other than A-Z, a-z, 0-9 and _; some clients rename such tools'
    table.insert(out.lint, { field = 'name', message = message })
  end
end

local function check_annotations(annotations, out)
  for _, key in ipairs(value.names(annotations)) do
    local v, field = annotations[key], 'annotations.' .. tostring(key)
    if M.HINTS[key] then
      if type(v) ~= 'boolean' then
        table.insert(out.faults, { field = field, message = 'must be true or false' })
      end
    elseif key == 'title' then
      local message = text(v)
      if message then
        table.insert(out.faults, { field = field, message = message })
      end
    else
      local near = nearest(tostring(key), vim.tbl_keys(M.HINTS))
      local message = 'unknown, not published' .. (near and (', did you mean %s?'):format(near) or '')
      table.insert(out.lint, { field = field, message = message })
    end
  end
end

local function check_hosts(hosts, out)
  for _, name in ipairs(value.names(hosts)) do
    if type(hosts[name]) ~= 'table' then
      table.insert(out.faults, { field = 'hosts.' .. tostring(name), message = 'must be a table' })
    end
  end
  local mcp = type(hosts.mcp) == 'table' and hosts.mcp or {}
  for _, key in ipairs({ 'meta', 'icons' }) do
    local v = mcp[key]
    local fault = v ~= nil and faults_of.data(v)
    local message = fault and fault.message
    if not message and key == 'meta' and v ~= nil and not value.is_object(v) then
      message = 'must map names to data'
    elseif not message and key == 'icons' and v ~= nil and not value.is_array(v) then
      message = 'must be a list'
    end
    if message then
      table.insert(out.faults, { field = 'hosts.mcp.' .. key, message = message })
    end
  end
end

local function check_choices(def, out)
  if def.args ~= nil and def.input_schema ~= nil then
    table.insert(out.faults, { field = 'input_schema', message = 'stands beside args; give one of the two' })
  end
  if def.execute ~= nil and def.run ~= nil then
    table.insert(out.faults, { field = 'run', message = 'stands beside execute; give one of the two' })
  elseif def.execute == nil and def.run == nil then
    table.insert(out.faults, { field = 'execute', message = 'is required (or run)' })
  end
end

--- Looks at every field of a definition.
---@param def table its fields; those that are `vim.NIL` have been taken out
---@return { faults: mcp-tools.Fault[], lint: mcp-tools.Fault[] }
function M.check(def)
  local out = { faults = {}, lint = {} }
  for _, field in ipairs(REQUIRED) do
    if def[field] == nil then
      table.insert(out.faults, { field = field, message = 'is required' })
    end
  end
  for _, field in ipairs(value.names(def)) do
    local rule = RULES[field]
    if rule then
      local message = rule(def[field])
      if message then
        table.insert(out.faults, { field = field, message = message })
      end
    else
      local near = nearest(tostring(field), vim.tbl_keys(RULES))
      local message = 'unknown field' .. (near and (', did you mean %s?'):format(near) or '')
      table.insert(out.lint, { field = tostring(field), message = message })
    end
  end
  check_name(def, out)
  check_choices(def, out)
  if type(def.description) == 'string' and #def.description > MAX_DESCRIPTION then
    local message = ('longer than %d bytes; some clients cut it there'):format(MAX_DESCRIPTION)
    table.insert(out.lint, { field = 'description', message = message })
  end
  if type(def.annotations) == 'table' then
    check_annotations(def.annotations, out)
  end
  if type(def.hosts) == 'table' then
    check_hosts(def.hosts, out)
  end
  return out
end

return M
