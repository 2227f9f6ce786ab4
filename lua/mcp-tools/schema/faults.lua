--- Finds the faults of a schema: invalid values of keywords, unsupported keywords, invalid references, values that are
--- not JSON, schemas that are too large.
---
--- Loaded at start-up; it must not require the compiler.

local keywords = require('mcp-tools.schema.keywords')
local utf8 = require('mcp-tools.util.utf8')
local value = require('mcp-tools.schema.value')

local M = {}

local NIL = vim.NIL
local join = keywords.join

--- Maximum depth. The definition is sent inside other objects, and every client parses 100 levels.
local MAX_DEPTH = 96
--- Maximum number of values. More would block the main thread, and models do not read that much.
local MAX_PARTS = 20000

local function is_list(v)
  return type(v) == 'table' and (next(v) == nil or value.is_array(v))
end

local function is_map(v)
  if type(v) ~= 'table' then
    return false
  end
  for key in pairs(v) do
    if type(key) ~= 'string' then
      return false
    end
  end
  return true
end

---@param is_valid fun(v: any): boolean
---@param message string
---@return fun(v: any): string?
local function rule(is_valid, message)
  return function(v)
    return not is_valid(v) and message or nil
  end
end

--- Returns why a keyword's value is invalid. `inspect` checks the schemas inside of maps and lists.
---@type table<mcp-tools.schema.Shape, fun(v: any): string?>
local form = {
  schema = rule(function(v)
    return type(v) == 'table' or type(v) == 'boolean'
  end, 'must be a schema (a table or a boolean)'),
  schemas = function(v)
    if not is_list(v) then
      return 'must be a list of schemas'
    end
    if #v == 0 then
      return 'must not be empty'
    end
  end,
  map = rule(is_map, 'must map names to schemas'),
  strings = rule(value.is_strings, 'must be a list of names'),
  lists = rule(function(v)
    return is_map(v) and vim.iter(vim.tbl_values(v)):all(value.is_strings)
  end, 'must map names to lists of names'),
  list = rule(is_list, 'must be a list'),
  string = rule(value.is_of_type.string, 'must be a string'),
  boolean = rule(value.is_of_type.boolean, 'must be true or false'),
  number = rule(value.is_of_type.number, 'must be a number'),
  positive = rule(function(v)
    return type(v) == 'number' and v > 0
  end, 'must be a number above 0'),
  count = rule(function(v)
    return value.is_integer(v) and v >= 0
  end, 'must be a whole number, 0 or more'),
  type = function(v)
    local list = type(v) == 'table' and v or { v }
    if not is_list(list) or #list == 0 then
      return 'must be a type or a list of types'
    end
    for _, name in ipairs(list) do
      if type(name) ~= 'string' then
        return 'must be a type (a string) or a list of types'
      end
      if not value.is_of_type[name] then
        return ('%q is not a type (types: %s)'):format(name, table.concat(value.names(value.is_of_type), ', '))
      end
    end
  end,
}

--- Finds the first part of a value that cannot be encoded as JSON, or is too large.
---@param v any
---@param path string
---@param above table<table, true> tables that contain `v`
---@param count { depth: integer, parts: integer } `parts`: values so far; shared tables count each time
---@return string? path, string? message
local function not_json(v, path, above, count)
  local kind = type(v)
  count.parts = count.parts + 1
  if count.parts > MAX_PARTS then
    return '', ('has more than %d values'):format(MAX_PARTS)
  elseif kind == 'number' then
    if v ~= v or v == math.huge or v == -math.huge then
      return path, 'must be a finite number'
    end
  elseif kind == 'table' then
    if above[v] then
      return path, 'contains itself; use $ref'
    elseif count.depth == MAX_DEPTH then
      return '', ('is nested more than %d levels deep'):format(MAX_DEPTH)
    end
    above[v], count.depth = true, count.depth + 1
    local list = v[1] ~= nil
    for key, item in pairs(v) do
      if type(key) ~= (list and 'number' or 'string') then
        return path, list and 'mixes a list with names' or ('has a %s as a key'):format(type(key))
      elseif not list and utf8.invalid_at(key) then
        return path, 'has a name that is not UTF-8'
      end
      local at, message = not_json(item, join(path, key), above, count)
      if at then
        return at, message
      end
    end
    above[v], count.depth = nil, count.depth - 1
  elseif kind == 'string' then
    if utf8.invalid_at(v) then
      return path, 'is not UTF-8'
    end
  elseif v ~= NIL and kind ~= 'boolean' then
    return path, ('is a %s, not data'):format(kind)
  end
end

local function inspect(schema, path, out)
  if type(schema) ~= 'table' then
    return
  end
  if not is_map(schema) then
    local hint = path:find('items$') and '; a list of schemas is `prefixItems`' or ''
    out[#out + 1] = { field = path, message = 'must be a schema, not a list' .. hint }
    return
  end
  for keyword, v in pairs(schema) do
    local at = join(path, keyword)
    local shape = keywords.shapes[keyword]
    if keywords.unsupported[keyword] then
      out[#out + 1] = { field = at, message = keywords.unsupported[keyword] }
    elseif keyword == '$id' and path ~= '' then
      out[#out + 1] = { field = at, message = 'not supported below the top; use $ref = "#/…"' }
    elseif shape then
      local message = form[shape](v)
      if message then
        out[#out + 1] = { field = at, message = message }
      end
    end
  end
  keywords.children(schema, path, function(child, at, keyword)
    if keywords.shapes[keyword] ~= 'schema' then
      local message = form.schema(child)
      if message then
        out[#out + 1] = { field = at, message = message }
      end
    end
    inspect(child, at, out)
  end)
end

-- References -------------------------------------------------------------------------------------------------------

--- Returns the schema that a reference refers to.
---@param root table
---@param reference string
---@return table|boolean|nil target
---@return string? message
local function follow(root, reference)
  if reference ~= '#' and reference:sub(1, 2) ~= '#/' then
    return nil, ('%q is not supported; only references that begin with "#/" are'):format(reference)
  end
  local at = root
  for step in vim.uri_decode(reference:sub(2)):gmatch('/([^/]*)') do
    if type(at) ~= 'table' then
      break
    end
    step = step:gsub('~1', '/'):gsub('~0', '~')
    local number = at[1] ~= nil and step:match('^%d+$') and tonumber(step)
    at = at[number and number + 1 or step]
  end
  if at == nil or type(at) ~= 'table' and type(at) ~= 'boolean' then
    return nil, ('%q does not exist'):format(reference)
  end
  return at
end

--- Calls `fn` once for each schema within a schema, itself included.
---@param schema any
---@param path string
---@param seen table<table, true>
---@param fn fun(schema: table, path: string)
local function each_schema(schema, path, seen, fn)
  if type(schema) == 'table' and not seen[schema] then
    seen[schema] = true
    fn(schema, path)
    keywords.children(schema, path, function(child, at)
      each_schema(child, at, seen, fn)
    end)
  end
end

--- Returns the target of each reference in a schema without faults.
---@param schema table|boolean
---@return table<table, table|boolean>
function M.targets(schema)
  local out = {}
  each_schema(schema, '', {}, function(part)
    out[part] = part['$ref'] and follow(schema --[[@as table]], part['$ref'])
  end)
  return out
end

--- Keywords whose schemas apply to the same value.
local IN_PLACE = { allOf = true, anyOf = true, oneOf = true, ['not'] = true, ['if'] = true }
IN_PLACE['then'], IN_PLACE['else'], IN_PLACE.dependentSchemas = true, true, true
local MAX_CHAIN = 100

--- Returns whether a schema refers to itself for the same value, so that no check would end.
local function is_endless(schema, root, known, level)
  if type(schema) ~= 'table' or known[schema] == 'finite' then
    return false
  elseif known[schema] == 'open' or level > MAX_CHAIN then
    return true
  end
  known[schema] = 'open'
  local found = schema['$ref'] ~= nil and is_endless(follow(root, schema['$ref']), root, known, level + 1)
  keywords.children(schema, '', function(child, _, keyword)
    found = found or IN_PLACE[keyword] ~= nil and is_endless(child, root, known, level + 1)
  end)
  known[schema] = 'finite'
  return found
end

---@param schema table whose other keywords are without faults
---@param out mcp-tools.Fault[]
local function inspect_references(schema, out)
  local seen, references, known = {}, {}, {}
  each_schema(schema, '', seen, function(part, path)
    if part['$ref'] then
      table.insert(references, { part = part, field = join(path, '$ref') })
    end
  end)
  for _, reference in ipairs(references) do
    local target, message = follow(schema, reference.part['$ref'])
    if type(target) == 'table' and not seen[target] then
      message = ('%q is not a schema'):format(reference.part['$ref'])
    end
    out[#out + 1] = message and { field = reference.field, message = message }
  end
  for _, reference in ipairs(#out == 0 and references or {}) do
    if is_endless(reference.part, schema, known, 1) then
      local message = ('is an endless reference, or a chain of more than %d references'):format(MAX_CHAIN)
      out[#out + 1] = { field = reference.field, message = message }
    end
  end
end

M.each_schema = each_schema

--- Returns why a value cannot be encoded as JSON.
---@param v any
---@return mcp-tools.Fault?
function M.data(v)
  local at, message = not_json(v, '', {}, { depth = 0, parts = 0 })
  return at and { field = at == '' and '(root)' or at, message = message } or nil
end

--- Returns all faults of a schema, sorted by path.
---@param schema any
---@return mcp-tools.Fault[]
function M.find(schema)
  local message = form.schema(schema)
  if message then
    return { { field = '(root)', message = message } }
  end
  local not_data = M.data(schema)
  if not_data then
    return { not_data }
  end
  local out = {}
  inspect(schema, '', out)
  if #out == 0 and type(schema) == 'table' then
    inspect_references(schema, out)
  end
  for _, fault in ipairs(out) do
    fault.field = fault.field == '' and '(root)' or fault.field
  end
  table.sort(out, function(a, b)
    return a.field < b.field
  end)
  return out
end

return M
