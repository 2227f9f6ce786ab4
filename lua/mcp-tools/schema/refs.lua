--- References inside one schema: `$id`, `$anchor`, `$defs`, JSON pointers; never another document.
---
--- Receives: a schema whose own form has been checked (faults.lua).
--- Sends: `target` (schema with `$ref` → schema it means), or faults for references that lead nowhere, outside, or
--- where no check would end (expansion.lua).
--- Does not know about: values, closures.

local expansion = require('mcp-tools.schema.expansion')
local faults_of = require('mcp-tools.schema.faults').find
local keywords = require('mcp-tools.schema.keywords')
local uri = require('mcp-tools.schema.uri')

local M = {}

---@class mcp-tools.schema.Refs
---@field target table<table, table|boolean> by the schema that holds the `$ref`

---@class mcp-tools.schema.Index
---@field resources table<string, table> schemas by absolute URI
---@field anchors table<string, table> schemas by `uri#anchor`
---@field base table<table, string> the URI each schema's references are relative to
---@field referring { schema: table, path: string }[]

---@param index mcp-tools.schema.Index
local function add(index, schema, path, base)
  if type(schema) ~= 'table' or index.base[schema] then
    return
  end
  if schema['$id'] then
    base = uri.resolve(base, schema['$id'])
    index.resources[base] = schema
  end
  index.base[schema] = base
  for _, keyword in ipairs({ '$anchor', '$dynamicAnchor' }) do
    if schema[keyword] then
      index.anchors[base .. '#' .. schema[keyword]] = schema
    end
  end
  if schema['$ref'] then
    index.referring[#index.referring + 1] = { schema = schema, path = keywords.join(path, '$ref') }
  end
  keywords.children(schema, path, function(child, at)
    add(index, child, at, base)
  end)
end

--- Follows a JSON pointer; what it finds is a schema even under an unknown keyword.
---@param index mcp-tools.schema.Index
---@param root table
---@param pointer string
---@return table|boolean|nil
---@return mcp-tools.Fault? fault of what stands there: under an unknown keyword nobody has looked at its form
local function follow(index, root, pointer)
  local at, base = root, index.base[root]
  for step in pointer:gmatch('/([^/]*)') do
    if type(at) ~= 'table' then
      return nil
    end
    step = step:gsub('~1', '/'):gsub('~0', '~')
    local number = at[1] ~= nil and step:match('^%d+$') and tonumber(step)
    at = at[number and number + 1 or step]
    base = type(at) == 'table' and index.base[at] or base
  end
  if type(at) == 'table' then
    local fault = not index.base[at] and faults_of(at)[1] or nil
    if fault then
      return nil, fault
    end
    add(index, at, '', base)
    return at
  end
  if type(at) == 'boolean' then
    return at
  end
end

---@param index mcp-tools.schema.Index
---@param schema table the one with the `$ref`
---@return table|boolean|nil target, string? fault
local function resolve(index, schema)
  local reference = schema['$ref']
  local address, fragment = uri.resolve(index.base[schema], reference)
  local root = index.resources[address]
  if not root then
    return nil, ('%q is outside of this schema; only references within it work'):format(reference)
  end
  fragment = vim.uri_decode(fragment)
  local target, fault
  if fragment == '' then
    target = root
  elseif fragment:sub(1, 1) == '/' then
    target, fault = follow(index, root, fragment)
  else
    target = index.anchors[address .. '#' .. fragment]
  end
  if fault then
    return nil, ('%q leads to no schema: %s: %s'):format(reference, fault.field, fault.message)
  elseif target == nil then
    return nil, ('%q leads nowhere'):format(reference)
  end
  return target
end

--- Resolves every reference of a schema.
---@param schema table|boolean
---@return mcp-tools.schema.Refs? refs
---@return mcp-tools.Fault[]? faults
function M.resolve(schema)
  ---@type mcp-tools.schema.Index
  local index = { resources = {}, anchors = {}, base = {}, referring = {} }
  local target, faults = {}, {}
  if type(schema) ~= 'table' then
    return { target = target }
  end
  index.resources[''] = schema
  add(index, schema, '', '')
  -- Following a pointer into an unknown keyword may add to the list.
  local i = 1
  while index.referring[i] do
    local place = index.referring[i]
    local found, fault = resolve(index, place.schema)
    if fault then
      faults[#faults + 1] = { field = place.path, message = fault }
    else
      target[place.schema] = found
    end
    i = i + 1
  end
  if #faults == 0 then
    faults[1] = expansion.fault(index.referring, target)
  end
  if #faults > 0 then
    return nil, faults
  end
  return { target = target }
end

return M
