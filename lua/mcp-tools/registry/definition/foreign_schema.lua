--- Schemas of mounted servers: published unchanged, because the server validates the arguments.
---
--- Checks only what every client requires of a tool: a top-level object, whose properties are a map.

local common = require('mcp-tools.registry.definition.common')
local schema_faults = require('mcp-tools.schema.faults')
local value = require('mcp-tools.schema.value')

local M = {}

---@param properties any
---@return boolean
local function is_map_of_schemas(properties)
  if type(properties) ~= 'table' then
    return false
  end
  for name, schema in pairs(properties) do
    if type(name) ~= 'string' or (type(schema) ~= 'table' and type(schema) ~= 'boolean') then
      return false
    end
  end
  return true
end

--- Checks a schema.
---@param given table|string|nil the schema or its JSON text
---@return table? published
---@return mcp-tools.Fault?
---@return string? text the JSON text, if it can be published unchanged
function M.take(given)
  local schema, text = given or {}, nil ---@type any, string?
  if type(given) == 'string' then
    local ok, decoded = pcall(vim.json.decode, given)
    schema, text = ok and decoded, given
  end
  if type(schema) ~= 'table' then
    return nil, { field = '', message = 'must be a schema' }
  end
  local fault = schema_faults.data(schema)
  if fault then
    return nil, fault
  elseif schema.type ~= nil and schema.type ~= 'object' then
    return nil, { field = 'type', message = 'must be "object" at the top' }
  elseif schema.properties ~= nil and not is_map_of_schemas(schema.properties) then
    return nil, { field = 'properties', message = 'must map names to schemas' }
  elseif schema.required ~= nil and common.texts(schema.required) then
    return nil, { field = 'required', message = 'must be a list of names' }
  end
  local published = vim.tbl_extend('force', schema, { type = 'object' })
  local is_list = schema.properties and next(schema.properties) == nil and vim.islist(schema.properties)
  if is_list then
    published.properties = vim.empty_dict() -- some servers encode an empty map as an array
  end
  return published, nil, schema.type and not is_list and text or nil
end

---@param list table
---@param schema any
---@return table
local function shaped_list(list, schema)
  local out = {}
  for i, item in ipairs(list) do
    out[i] = M.shaped(item, schema)
  end
  return out
end

--- Marks empty tables of a value from Lua as objects where the schema has `type: object`.
---@param v any not changed
---@param schema any
---@return any
function M.shaped(v, schema)
  if type(v) ~= 'table' or type(schema) ~= 'table' then
    return v
  elseif next(v) == nil then
    return schema.type == 'object' and vim.empty_dict() or v
  elseif value.is_array(v) then
    return shaped_list(v, schema.items)
  end
  local out, properties = {}, type(schema.properties) == 'table' and schema.properties or {}
  for name, item in pairs(v) do
    out[name] = M.shaped(item, properties[name])
  end
  return out
end

return M
