--- Schemas of tools: converts the short form of arguments, prepares schemas for publishing, and takes those of mounted
--- servers.

local common = require('mcp-tools.registry.definition.common')
local keywords = require('mcp-tools.schema.keywords')
local schema_faults = require('mcp-tools.schema.faults')
local value = require('mcp-tools.schema.value')

local M = {}

-- The short form ----------------------------------------------------------------------------------------------------

local convert

--- Collects the `required` flags of properties. A property with a default is never required.
local function required_of(properties, listed)
  local required, seen = {}, {}
  local function add(name)
    if not seen[name] then
      seen[name] = true
      required[#required + 1] = name
    end
  end
  for _, name in ipairs(type(listed) == 'table' and listed or {}) do
    add(name)
  end
  for _, name in ipairs(value.names(properties)) do
    local property = properties[name]
    if type(property) == 'table' and property.required == true then
      if property.default == nil or property.default == vim.NIL then
        add(name)
      end
    end
  end
  return #required > 0 and required or nil
end

---@param closed boolean?
local function convert_each(v, closed)
  if type(v) ~= 'table' then
    return v
  end
  local copy = setmetatable({}, getmetatable(v))
  for key, item in pairs(v) do
    copy[key] = convert(item, closed)
  end
  return copy
end

--- Converts one schema. Values that are not tables are left for the later check.
convert = function(spec, closed)
  if type(spec) ~= 'table' then
    return spec
  end
  local copy = {}
  for keyword, v in pairs(spec) do
    local shape = keywords.shapes[keyword]
    if shape == 'schema' then
      copy[keyword] = convert(v, closed)
    elseif shape == 'map' or shape == 'schemas' then
      copy[keyword] = convert_each(v, closed)
    else
      copy[keyword] = v
    end
  end
  -- A boolean is for the surrounding object, a list for this one.
  if type(copy.required) == 'boolean' then
    copy.required = nil
  end
  if type(spec.properties) == 'table' then
    local listed = copy.required
    if listed == nil or type(listed) == 'table' then
      copy.required = required_of(spec.properties, listed)
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
  local properties = convert_each(args, closed)
  local schema = {
    type = 'object',
    properties = next(properties) and properties or vim.empty_dict(),
    required = required_of(args),
  }
  if closed then
    schema.additionalProperties = false
  end
  return schema
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

local prepare ---@type fun(schema: any): any

---@param list table<any, table>
---@return table
local function prepare_map(list)
  local copy = vim.tbl_map(prepare, list)
  return next(copy) and copy or vim.empty_dict()
end

---@type table<mcp-tools.schema.Shape, fun(v: any, schema: table): any>
local by_shape = {
  schema = function(v)
    return prepare(v)
  end,
  schemas = function(v)
    return vim.tbl_map(prepare, v)
  end,
  map = prepare_map,
  lists = function(v)
    local copy = vim.tbl_map(vim.list_slice, v)
    return next(copy) and copy or vim.empty_dict()
  end,
  list = function(v, schema)
    local copy = {}
    for i, item in ipairs(v) do
      copy[i] = M.shaped(item, schema)
    end
    return copy
  end,
}

---@param schema table|boolean
---@return table|boolean
prepare = function(schema)
  if type(schema) ~= 'table' then
    return schema
  end
  local copy = {}
  for keyword, v in pairs(schema) do
    local by = by_shape[keywords.shapes[keyword]]
    if by then
      copy[keyword] = by(v, schema)
    elseif keyword == 'default' or keyword == 'const' then
      copy[keyword] = M.shaped(v, schema)
    elseif keyword ~= 'required' or next(v) ~= nil then
      copy[keyword] = value.copy(v)
    end
  end
  if vim.list_contains(keywords.types_of(copy) or {}, 'array') and copy.items == nil and copy.prefixItems == nil then
    copy.items = vim.empty_dict() -- some clients require it
  end
  return next(copy) and copy or vim.empty_dict()
end

--- Returns a copy of a schema that can be published: without an empty `required`, with `items` for each array, and
--- with empty tables marked as objects where they are.
---@type fun(schema: any): any
M.publish = prepare

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
