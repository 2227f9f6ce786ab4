--- Gives empty tables the form that their schema says: `{}` in Lua is an object or an array, in JSON only one of them.
---
--- Receives: a value from Lua and its schema.
--- Sends: a copy in which empty tables are `vim.empty_dict()` where the schema means an object.
--- Does not know about: whether the value is right.

local value = require('mcp-tools.schema.value')

--- Whether a schema means an object by a table without content.
local function means_object(schema)
  return schema.type == 'object' or (schema.type == nil and schema.properties ~= nil)
end

---@param v any
---@param schema any
---@return any
local function shape(v, schema)
  if type(v) ~= 'table' or type(schema) ~= 'table' then
    return value.copy(v)
  end
  if next(v) == nil then
    if means_object(schema) then
      return vim.empty_dict()
    end
    return schema.type == 'array' and {} or value.copy(v)
  end
  local prefix, properties = schema.prefixItems or {}, schema.properties or {}
  local copy = {}
  for key, item in pairs(v) do
    local child
    if type(key) == 'number' then
      child = prefix[key] or schema.items
    else
      child = properties[key] or schema.additionalProperties
    end
    copy[key] = shape(item, child)
  end
  return copy
end

return shape
