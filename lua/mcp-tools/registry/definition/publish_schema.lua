--- Converts a schema to the form that is published in `inputSchema` and `outputSchema`, and compiled.

local keywords = require('mcp-tools.schema.keywords')
local value = require('mcp-tools.schema.value')

local EMPTY_DICT = getmetatable(vim.empty_dict())
local join = keywords.join

local prepare

--- State of the conversion.
---@class mcp-tools.Publishing
---@field repairs mcp-tools.Fault[]
---@field ambiguous { holder: table, key: any, schema: table }[] with an empty table, array or object

--- Returns whether a value is an empty table that would be encoded as `[]`.
local function written_as_list(v)
  return type(v) == 'table' and next(v) == nil and getmetatable(v) ~= EMPTY_DICT
end

--- Copies a value that the schema describes: a default, an enum value, an example.
local function put_value(notes, holder, key, v, schema)
  holder[key] = value.copy(v)
  if value.is_ambiguous(v) then
    table.insert(notes.ambiguous, { holder = holder, key = key, schema = schema })
  end
end

---@type table<mcp-tools.schema.Shape, fun(v: any, path: string, notes: mcp-tools.Publishing, schema: table): any>
local by_shape = {
  schema = function(v, path, notes)
    return prepare(v, path, notes)
  end,
  schemas = function(v, path, notes)
    local copy = {}
    for i, item in ipairs(v) do
      copy[i] = prepare(item, join(path, i), notes)
    end
    return copy
  end,
  map = function(v, path, notes)
    if written_as_list(v) then
      table.insert(notes.repairs, { field = path, message = 'empty, published as an object' })
    end
    local copy = {}
    for name, item in pairs(v) do
      copy[name] = prepare(item, join(path, name), notes)
    end
    return next(copy) and copy or vim.empty_dict()
  end,
  lists = function(v)
    local copy = {}
    for name, list in pairs(v) do
      copy[name] = vim.list_slice(list)
    end
    return next(copy) and copy or vim.empty_dict()
  end,
  list = function(v, _, notes, schema)
    local copy = {}
    for i, item in ipairs(v) do
      put_value(notes, copy, i, item, schema)
    end
    return copy
  end,
}

---@param schema table|boolean
---@param path string
---@param notes mcp-tools.Publishing
---@return table|boolean
prepare = function(schema, path, notes)
  if type(schema) ~= 'table' then
    return schema
  end
  local copy = {}
  for keyword, v in pairs(schema) do
    local at, by = join(path, keyword), by_shape[keywords.shapes[keyword]]
    if by then
      copy[keyword] = by(v, at, notes, copy)
    elseif keyword == 'default' or keyword == 'const' then
      put_value(notes, copy, keyword, v, copy)
    elseif keyword == 'required' and next(v) == nil then
      table.insert(notes.repairs, { field = at, message = 'empty, dropped' })
    else
      copy[keyword] = value.copy(v)
    end
  end
  if vim.list_contains(keywords.types_of(copy) or {}, 'array') and copy.items == nil and copy.prefixItems == nil then
    table.insert(notes.repairs, { field = path, message = 'an array without items, published with items of any kind' })
    copy.items = vim.empty_dict()
  end
  return next(copy) and copy or vim.empty_dict()
end

--- Marks empty tables in values as arrays or objects, as the finished schema requires.
---@param copy table
---@param notes mcp-tools.Publishing
local function shape_values(copy, notes)
  -- This validator is not reused, because the schema changes after it was compiled.
  -- Start-up cost: most schemas have no such value.
  local validator = #notes.ambiguous > 0 and require('mcp-tools.schema').compile_sound(copy)
  for _, place in ipairs(validator and notes.ambiguous or {}) do
    place.holder[place.key] = validator:shape(place.holder[place.key], place.schema)
  end
end

--- Returns a copy of a schema that can be published.
---@param schema table
---@return table copy
---@return mcp-tools.Fault[] repairs paths are relative to the schema
return function(schema)
  local notes = { repairs = {}, ambiguous = {} }
  local copy = prepare(schema, '', notes) --[[@as table]]
  shape_values(copy, notes)
  return copy, notes.repairs
end
