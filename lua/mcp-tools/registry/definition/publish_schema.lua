--- Makes a schema ready to be published and compiled.
---
--- Receives: a schema as its author wrote it, without faults (schema/faults.lua).
--- Sends: a deep copy whose empty tables encode as what they stand for, and the repairs that were needed. All else is
--- in the copy as it was, keywords nobody knows included.
--- Does not know about: tools, references.

local keywords = require('mcp-tools.schema.keywords')
local shape = require('mcp-tools.schema.shape')
local value = require('mcp-tools.schema.value')

local EMPTY_DICT = getmetatable(vim.empty_dict())
local join = keywords.join

local prepare

--- Whether something is an empty table that would be written as `[]`.
local function written_as_list(v)
  return type(v) == 'table' and next(v) == nil and getmetatable(v) ~= EMPTY_DICT
end

---@type table<mcp-tools.schema.Shape, fun(v: any, path: string, repairs: mcp-tools.Fault[], schema: table): any>
local by_shape = {
  schema = function(v, path, repairs)
    return prepare(v, path, repairs)
  end,
  schemas = function(v, path, repairs)
    local copy = {}
    for i, item in ipairs(v) do
      copy[i] = prepare(item, join(path, i), repairs)
    end
    return copy
  end,
  map = function(v, path, repairs)
    if written_as_list(v) then
      repairs[#repairs + 1] = { field = path, message = 'empty, published as an object' }
    end
    local copy = {}
    for name, item in pairs(v) do
      copy[name] = prepare(item, join(path, name), repairs)
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
  list = function(v, _, _, schema)
    local copy = {}
    for i, item in ipairs(v) do
      copy[i] = shape(item, schema)
    end
    return copy
  end,
}

---@param v any
---@param path string
---@param repairs mcp-tools.Fault[]
---@param schema table the one that holds the keyword
local function keyword_value(keyword, v, path, repairs, schema)
  local kind = keywords.shapes[keyword]
  if by_shape[kind] then
    return by_shape[kind](v, path, repairs, schema)
  elseif keyword == 'default' or keyword == 'const' then
    return shape(v, schema)
  elseif keyword == 'required' and next(v) == nil then
    repairs[#repairs + 1] = { field = path, message = 'empty, dropped' }
    return nil
  end
  return value.copy(v)
end

---@param schema table|boolean
---@param path string
---@param repairs mcp-tools.Fault[]
---@return table|boolean
prepare = function(schema, path, repairs)
  if type(schema) ~= 'table' then
    return schema
  end
  local copy = {}
  for keyword, v in pairs(schema) do
    copy[keyword] = keyword_value(keyword, v, join(path, keyword), repairs, schema)
  end
  if vim.tbl_contains(keywords.types_of(copy) or {}, 'array') and copy.items == nil and copy.prefixItems == nil then
    repairs[#repairs + 1] = { field = path, message = 'an array without items, published with items of any kind' }
    copy.items = vim.empty_dict()
  end
  return next(copy) and copy or vim.empty_dict()
end

--- A copy of a schema that can be published.
---@param schema table
---@return table copy
---@return mcp-tools.Fault[] repairs paths begin at the schema
return function(schema)
  local repairs = {}
  local copy = prepare(schema, '', repairs)
  return copy, repairs
end
