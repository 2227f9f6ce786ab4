--- Converts the short form of arguments to JSON Schema.

local keywords = require('mcp-tools.schema.keywords')
local value = require('mcp-tools.schema.value')

local M = {}

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
function M.to_schema(args, closed)
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

return M
