--- The lint of schemas: what is wrong with a schema itself.
---
--- Receives: a schema as its author wrote it.
--- Sends: every fault as `{field, message}`: values of the wrong form, keywords the check does not support, things
--- that are not JSON, more of it than a client could take.
--- Does not know about: references (refs.lua finds those that lead nowhere), values, tools. This is the door: it needs
--- nothing of what compiles and checks.

local extent = require('mcp-tools.schema.extent')
local keywords = require('mcp-tools.schema.keywords')
local suggest = require('mcp-tools.util.suggest')
local utf8 = require('mcp-tools.util.utf8')
local value = require('mcp-tools.schema.value')

local M = {}

local NIL = vim.NIL
local join = keywords.join

--- What stands inside a definition is written inside a list inside a message, and 100 levels are what every client
--- parses.
local MAX_DEPTH = 96
--- Levels that are looked through at all; not far beyond Lua's own stack ends.
local MAX_SEARCHED = 900
--- More would take the editor longer to look through than a person waits, and be longer than what models read.
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

local function all_strings(list)
  for _, item in ipairs(list) do
    if type(item) ~= 'string' then
      return false
    end
  end
  return true
end

--- What other languages call the types.
local ALIASES = {
  int = 'integer',
  float = 'number',
  double = 'number',
  str = 'string',
  bool = 'boolean',
  list = 'array',
  dict = 'object',
  map = 'object',
  table = 'object',
  ['nil'] = 'null',
  none = 'null',
}

--- Why a value does not fit the form of its keyword; nil when it does. Maps and lists of schemas are looked into by
--- the walk, here only whether they are maps and lists.
---@type table<mcp-tools.schema.Shape, fun(v: any): string?>
local form = {
  schema = function(v)
    if v == NIL or (type(v) ~= 'table' and type(v) ~= 'boolean') then
      return 'must be a schema (a table or a boolean)'
    end
  end,
  schemas = function(v)
    if not is_list(v) then
      return 'must be a list of schemas'
    end
    if #v == 0 then
      return 'must not be empty'
    end
  end,
  map = function(v)
    return not is_map(v) and 'must map names to schemas' or nil
  end,
  strings = function(v)
    return not (is_list(v) and all_strings(v)) and 'must be a list of names' or nil
  end,
  lists = function(v)
    if not is_map(v) then
      return 'must map names to lists of names'
    end
    for _, list in pairs(v) do
      if not (is_list(list) and all_strings(list)) then
        return 'must map names to lists of names'
      end
    end
  end,
  list = function(v)
    return not is_list(v) and 'must be a list' or nil
  end,
  string = function(v)
    return type(v) ~= 'string' and 'must be a string' or nil
  end,
  boolean = function(v)
    return type(v) ~= 'boolean' and 'must be true or false' or nil
  end,
  number = function(v)
    return type(v) ~= 'number' and 'must be a number' or nil
  end,
  positive = function(v)
    return (type(v) ~= 'number' or v <= 0) and 'must be a number above 0' or nil
  end,
  count = function(v)
    return not (value.is_integer(v) and v >= 0) and 'must be a whole number, 0 or more' or nil
  end,
  type = function(v)
    local list = type(v) == 'table' and v or { v }
    if not is_list(list) or #list == 0 then
      return 'must be a type or a list of types'
    end
    for _, name in ipairs(list) do
      if type(name) ~= 'string' then
        return 'must be a type (a string) or a list of types'
      end
      if not keywords.is_type[name] then
        local near = ALIASES[name:lower()] or suggest(name, keywords.types)
        return ('%q is not a type%s (types: %s)'):format(
          name,
          near and (', did you mean "%s"?'):format(near) or '',
          table.concat(keywords.types, ', ')
        )
      end
    end
  end,
}

--- Finds the first thing in a value that JSON cannot carry.
---@param v any
---@param path string
---@param above table<table, true|false> true: `v` is inside of it; false: nothing was found in it
---@param level integer
---@return string? path, string? message
local function not_json(v, path, above, level)
  local kind = type(v)
  if kind == 'number' then
    if v ~= v or v == math.huge or v == -math.huge then
      return path, 'must be a finite number'
    end
  elseif kind == 'table' then
    if above[v] ~= nil then
      return above[v] and path or nil, 'contains itself; use $ref'
    elseif level > MAX_SEARCHED then
      return '', ('is nested more than %d levels deep; at most %d can be published'):format(level - 1, MAX_DEPTH)
    end
    above[v] = true
    local list = v[1] ~= nil
    for key, item in pairs(v) do
      if type(key) ~= (list and 'number' or 'string') then
        return path, list and 'mixes a list with names' or ('has a %s as a key'):format(type(key))
      elseif not list and utf8.invalid_at(key) then
        return path, 'has a name that is not UTF-8'
      end
      local at, message = not_json(item, join(path, key), above, level + 1)
      if at then
        return at, message
      end
    end
    above[v] = false
  elseif kind == 'string' then
    if utf8.invalid_at(v) then
      return path, 'is not UTF-8'
    end
  elseif v ~= NIL and kind ~= 'boolean' then
    return path, ('is a %s, not data'):format(kind)
  end
end

--- What is too large about a value that is data otherwise.
---@param v any
---@return string?
local function too_large(v)
  local size = extent(v)
  if size.depth > MAX_DEPTH then
    return ('is nested %s levels deep; at most %d can be published'):format(size.depth, MAX_DEPTH)
  elseif size.parts > MAX_PARTS then
    return ('has %.0f parts when it is written out; at most %d can be published'):format(size.parts, MAX_PARTS)
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

--- Why a value is not data that JSON can carry.
---@param v any
---@return mcp-tools.Fault?
function M.data(v)
  local at, message = not_json(v, '', {}, 1)
  if not at then
    at, message = '', too_large(v)
  end
  return message and { field = at == '' and '(root)' or at, message = message } or nil
end

--- Every fault of a schema, sorted by where it stands.
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
  for _, fault in ipairs(out) do
    fault.field = fault.field == '' and '(root)' or fault.field
  end
  table.sort(out, function(a, b)
    return a.field < b.field
  end)
  return out
end

return M
