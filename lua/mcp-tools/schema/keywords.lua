--- The supported keywords of JSON Schema draft 2020-12, and the types of their values.
---
--- Source: https://json-schema.org/draft/2020-12/json-schema-core, …/json-schema-validation

local M = {}

---@alias mcp-tools.schema.Shape string type of a keyword's value, such as `schema` or `count` (a whole number from 0)

--- Type of each keyword's value. Other keywords are annotations with any value.
---@type table<string, mcp-tools.schema.Shape>
M.shapes = {}
for shape, keywords in pairs({
  string = '$schema $id $ref $anchor $dynamicAnchor $comment'
    .. ' pattern format title description contentEncoding contentMediaType',
  map = '$defs definitions properties patternProperties dependentSchemas',
  schema = 'additionalProperties propertyNames items contains not if then else contentSchema',
  schemas = 'allOf anyOf oneOf prefixItems',
  type = 'type',
  list = 'enum examples',
  strings = 'required',
  lists = 'dependentRequired',
  boolean = 'uniqueItems deprecated readOnly writeOnly',
  number = 'minimum maximum exclusiveMinimum exclusiveMaximum',
  positive = 'multipleOf',
  count = 'minLength maxLength minItems maxItems minContains maxContains minProperties maxProperties',
}) do
  for keyword in keywords:gmatch('%S+') do
    M.shapes[keyword] = shape
  end
end

--- Unsupported keywords, with the message for the author.
---@type table<string, string>
M.unsupported = {
  ['$dynamicRef'] = 'not supported; use $ref',
  unevaluatedProperties = 'not supported; use additionalProperties in one schema that lists all properties',
  unevaluatedItems = 'not supported; use items',
}

--- Returns the `type` of a schema as a list; nil if it has none.
---@param schema table
---@return string[]?
function M.types_of(schema)
  local types = schema.type
  return types and (type(types) == 'table' and types or { types }) or nil
end

--- Appends a key to a path: `.name`, `[0]`, or `["odd name"]`.
---@param path string '' at the root
---@param key string|integer Lua index for lists
---@return string
function M.join(path, key)
  if type(key) == 'number' then
    return ('%s[%d]'):format(path, key - 1)
  end
  if not key:find('^[%w_$-]+$') then
    return ('%s[%s]'):format(path, (vim.json.encode(key):gsub('\\/', '/'))) -- Neovim 0.10 escapes slashes
  end
  return path == '' and key or path .. '.' .. key
end

--- Calls `fn(child, path, keyword)` for every direct subschema of a schema, which may be malformed.
---@param schema table
---@param path string
---@param fn fun(child: any, path: string, keyword: string)
function M.children(schema, path, fn)
  for keyword, value in pairs(schema) do
    local shape = M.shapes[keyword]
    if shape == 'schema' then
      fn(value, M.join(path, keyword), keyword)
    elseif (shape == 'schemas' or shape == 'map') and type(value) == 'table' then
      local at = M.join(path, keyword)
      for key, child in pairs(value) do
        if type(key) == 'number' or type(key) == 'string' then
          fn(child, M.join(at, key --[[@as string|integer]]), keyword)
        end
      end
    end
  end
end

return M
