--- Schemas of tools: converts the short form of arguments, prepares schemas for publishing, and takes those of mounted
--- servers.

local common = require('mcp-tools.registry.definition.common')
local keywords = require('mcp-tools.schema.keywords')
local schema_faults = require('mcp-tools.schema.faults')
local value = require('mcp-tools.schema.value')

local M = {}

--- Returns a copy of a schema.
---@param schema table
---@param fn fun(child: any): any converts each direct subschema
---@param other fun(keyword: any, v: any): any converts each other value
---@return table
local function mapped(schema, fn, other)
  local copy = {}
  for keyword, v in pairs(schema) do
    local shape = keywords.shapes[keyword]
    if shape == 'schema' then
      copy[keyword] = fn(v)
    elseif type(v) == 'table' and (shape == 'map' or shape == 'schemas') then
      copy[keyword] = shape == 'map' and next(v) == nil and vim.empty_dict() or vim.tbl_map(fn, v)
    else
      copy[keyword] = other(keyword, v)
    end
  end
  return copy
end

-- The short form ----------------------------------------------------------------------------------------------------

--- Collects the `required` flags of properties. A property with a default is never required.
local function required_of(properties, listed)
  local required = vim.list_slice(listed or {})
  for _, name in ipairs(value.names(properties)) do
    local property = properties[name]
    local is_flagged = type(property) == 'table' and property.required == true
    local has_default = is_flagged and property.default ~= nil and property.default ~= vim.NIL
    if is_flagged and not has_default and not vim.list_contains(required, name) then
      table.insert(required, name)
    end
  end
  return #required > 0 and required or nil
end

--- Converts one schema. Values that are not tables are left for the later check.
---@param spec any
---@param closed boolean?
---@return any
local function convert(spec, closed)
  if type(spec) ~= 'table' then
    return spec
  end
  local copy = mapped(spec, function(child)
    return convert(child, closed)
  end, function(_, v)
    return v
  end)
  -- A boolean is for the surrounding object, a list for this one.
  if type(copy.required) == 'boolean' then
    copy.required = nil
  end
  if type(spec.properties) == 'table' then
    if copy.required == nil or type(copy.required) == 'table' then
      copy.required = required_of(spec.properties, copy.required)
    end
    if closed and copy.additionalProperties == nil then
      copy.additionalProperties = false
    end
  end
  return copy
end

--- Returns the schema of a tool's arguments.
---@param args table<string, table> without cycles
---@param closed? boolean objects with `properties` accept no others by default
---@return table schema
function M.of_args(args, closed)
  return convert({ type = 'object', properties = args }, closed)
end

-- Values from Lua ---------------------------------------------------------------------------------------------------

---@param schema table
---@return boolean
local function is_object(schema)
  local types = keywords.types_of(schema)
  if types then
    return vim.list_contains(types, 'object') and not vim.list_contains(types, 'array')
  end
  return schema.properties ~= nil
end

--- Marks empty tables of a value from Lua as objects where the schema describes only objects.
---@param v any not changed
---@param schema any
---@return any
function M.shaped(v, schema)
  if type(v) ~= 'table' or type(schema) ~= 'table' then
    return v
  elseif next(v) == nil then
    return is_object(schema) and vim.empty_dict() or v
  end
  local out, properties = {}, type(schema.properties) == 'table' and schema.properties or {}
  local items = value.is_array(v) and (schema.items or {})
  for key, item in pairs(v) do
    out[key] = M.shaped(item, items or properties[key])
  end
  return out
end

-- Publishing in `inputSchema` and `outputSchema` --------------------------------------------------------------------

--- Returns a copy of a schema that can be published: without an empty `required`, with `items` for each array, and
--- with empty tables marked as objects where they are.
---@param schema any
---@return any
function M.publish(schema)
  if type(schema) ~= 'table' then
    return schema
  end
  local copy = mapped(schema, M.publish, function(keyword, v)
    local shape = keywords.shapes[keyword]
    if shape == 'list' then
      return vim.tbl_map(function(item)
        return M.shaped(item, schema)
      end, v)
    elseif keyword == 'default' or keyword == 'const' then
      return M.shaped(v, schema)
    elseif shape == 'lists' and next(v) == nil then
      return vim.empty_dict()
    elseif keyword ~= 'required' or next(v) ~= nil then
      return value.copy(v)
    end
  end)
  if vim.list_contains(keywords.types_of(copy) or {}, 'array') and copy.items == nil and copy.prefixItems == nil then
    copy.items = vim.empty_dict() -- some clients require it
  end
  return next(copy) and copy or vim.empty_dict()
end

-- Mounted servers: published unchanged, because the server validates the arguments ----------------------------------

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

--- Checks what every client requires of a schema: a top-level object, whose properties are a map.
---@param given table|string|nil the schema or its JSON text
---@return table? published
---@return mcp-tools.Fault?
---@return string? text the JSON text, if it can be published unchanged
function M.take_foreign(given)
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

return M
