--- What references make of a schema: circles, and how much one value has to be held against.
---
--- Receives: a schema, and the schema that each `$ref` in it means.
--- Sends: why it cannot be used: a schema that comes back to itself for the same value, or that a few references double
--- until no check of it ends.
--- Does not know about: how references are resolved, values.

local keywords = require('mcp-tools.schema.keywords')

local M = {}

--- Schemas under these keywords check the same value as the schema that holds them.
local IN_PLACE = {
  allOf = true,
  anyOf = true,
  oneOf = true,
  ['not'] = true,
  ['if'] = true,
  ['then'] = true,
  ['else'] = true,
  dependentSchemas = true,
}

--- References after each other; each takes its part of Lua's stack.
local MAX_CHAIN = 200
--- Schemas that one value is held against.
local MAX_SCHEMAS = 5000
--- Values that defaults put into one empty object, those within defaults included.
local MAX_DEFAULTS = 5000

---@class mcp-tools.schema.Expansion
---@field target table<table, table|boolean>
---@field schemas table<table, number|'open'> how many schemas check the same value
---@field defaults table<table, number> how many values an empty object gets

--- How many schemas a value is held against, with every reference written out; nil for a circle.
---@param state mcp-tools.schema.Expansion
---@param schema any
---@param level integer
---@return number?
local function schemas_of(state, schema, level)
  if type(schema) ~= 'table' then
    return 0
  end
  local known = state.schemas[schema]
  if known == 'open' then
    return nil
  elseif known then
    return known --[[@as number]]
  elseif level > MAX_CHAIN then
    return math.huge
  end
  state.schemas[schema] = 'open'
  local sum = 1
  local function add(part)
    local inner = sum and schemas_of(state, part, level + 1)
    sum = inner and sum + inner
  end
  add(state.target[schema])
  keywords.children(schema, '', function(child, _, keyword)
    if IN_PLACE[keyword] then
      add(child)
    end
  end)
  state.schemas[schema] = sum
  return sum
end

--- How many values defaults put into an empty object.
---@param state mcp-tools.schema.Expansion
---@param schema any
---@param level integer
---@return number
local function defaults_of(state, schema, level)
  if type(schema) ~= 'table' then
    return 0
  elseif state.defaults[schema] then
    return state.defaults[schema]
  elseif level > MAX_CHAIN then
    return math.huge
  end
  state.defaults[schema] = 0 -- a default does not come again within itself
  local sum = defaults_of(state, state.target[schema], level + 1)
  keywords.children(schema, '', function(child, _, keyword)
    if keyword == 'allOf' then
      sum = sum + defaults_of(state, child, level + 1)
    elseif keyword == 'properties' and type(child) == 'table' then
      local meant = state.target[child]
      local default = child.default
      if default == nil and type(meant) == 'table' then
        default = meant.default
      end
      sum = sum + (default ~= nil and 1 or 0) + (type(default) == 'table' and defaults_of(state, child, level + 1) or 0)
    end
  end)
  state.defaults[schema] = sum
  return sum
end

--- Looks at every schema that holds a reference.
---@param places { schema: table, path: string }[]
---@param target table<table, table|boolean>
---@return mcp-tools.Fault?
function M.fault(places, target)
  ---@type mcp-tools.schema.Expansion
  local state = { target = target, schemas = {}, defaults = {} }
  places = vim.list_slice(places)
  table.sort(places, function(a, b)
    return a.path < b.path
  end)
  for _, place in ipairs(places) do
    local schemas, defaults = schemas_of(state, place.schema, 1), defaults_of(state, place.schema, 1)
    local message
    if not schemas then
      message = 'refers to itself without end'
    elseif schemas == math.huge or defaults == math.huge then
      message = ('leads through more than %d references'):format(MAX_CHAIN)
    elseif schemas > MAX_SCHEMAS then
      message = ('stands for %.0f schemas when references are written out; at most %d'):format(schemas, MAX_SCHEMAS)
    elseif defaults > MAX_DEFAULTS then
      message = ('leads to %.0f defaults within each other; at most %d'):format(defaults, MAX_DEFAULTS)
    end
    if message then
      return { field = place.path, message = message }
    end
  end
end

return M
