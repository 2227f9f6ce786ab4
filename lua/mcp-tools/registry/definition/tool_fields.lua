--- The fields of a tool definition: what each must be.
---
--- Receives: a definition as a plugin wrote it.
--- Sends: findings (registry/definition/common.lua), as `{field, message}`.
--- Does not know about: what stands inside schemas (registry/definition/tool.lua asks schema/init.lua).

local common = require('mcp-tools.registry.definition.common')
local value = require('mcp-tools.schema.value')

local M = {}

--- Names beyond these are cut, renamed or dropped by some clients.
local MAX_NAME = 40

--- Our names of the hints → MCP's.
M.HINTS = {
  read_only = 'readOnlyHint',
  destructive = 'destructiveHint',
  idempotent = 'idempotentHint',
  open_world = 'openWorldHint',
}

--- What each field must be: a function that says why a value is wrong.
---@type table<string, fun(v: any): string?>
local RULES = {
  name = common.name,
  title = common.text,
  description = common.filled_text,
  args = common.of_type('table'),
  input_schema = common.of_type('table'),
  output_schema = common.of_type('table'),
  annotations = common.of_type('table'),
  timeout = common.milliseconds,
  needs_approval = common.of_type('boolean', 'function', 'string'),
  preview = common.of_type('function'),
  previewed = common.of_type('table'),
  always_for = common.of_type('table'),
  short_lived = common.of_type('table'),
  state = common.of_type('function'),
  hosts = common.of_type('table'),
  execute = common.of_type('function'),
  run = common.of_type('function'),
  recommended = common.of_type('boolean'),
  explicit = common.of_type('boolean'),
  reviewed = common.of_type('boolean'),
}

local schema_or_text = common.of_type('table', 'string')
local MOUNTED_RULES = vim.tbl_extend('force', RULES, { input_schema = schema_or_text, output_schema = schema_or_text })

---@param name any
---@param out mcp-tools.Findings
local function check_name(name, out)
  if type(name) ~= 'string' then
    return
  end
  if #name > MAX_NAME then
    common.note(out.lint, 'name', ('longer than %d characters'):format(MAX_NAME))
  end
  if not name:find('^[%w_]+$') then
    common.note(out.lint, 'name', 'has characters other than A-Z, a-z, 0-9 and _; some clients rename such tools')
  end
end

---@param annotations any
---@param out mcp-tools.Findings
local function check_annotations(annotations, out)
  if type(annotations) ~= 'table' then
    return
  end
  for _, key in ipairs(value.names(annotations)) do
    local v, field = annotations[key], 'annotations.' .. tostring(key)
    if M.HINTS[key] then
      if type(v) ~= 'boolean' then
        common.note(out.faults, field, 'must be true or false')
      end
    elseif key == 'title' then
      local message = common.text(v)
      if message then
        common.note(out.faults, field, message)
      end
    else
      common.unknown(out, field, key, vim.tbl_keys(M.HINTS))
    end
  end
end

--- Looks at every field of a definition.
---@param def table its fields; those that are `vim.NIL` have been taken out
---@param mounted? boolean its schemas may be JSON text
---@return mcp-tools.Findings
function M.check(def, mounted)
  local out = common.findings()
  common.check_fields(def, mounted and MOUNTED_RULES or RULES, { 'name', 'description' }, out)
  check_name(def.name, out)
  if def.args ~= nil and def.input_schema ~= nil then
    common.note(out.faults, 'input_schema', 'stands beside args; give one of the two')
  end
  common.check_handler(def, 'execute', out)
  check_annotations(def.annotations, out)
  common.check_hosts(def.hosts, out)
  return out
end

return M
