--- Turns a schema into one Lua function per subschema.
---
--- Receives: a schema without faults and the targets of its references.
--- Sends: `check(value, report?) → boolean`. Without a report it stops at the first fault and allocates nothing; with
--- one it goes on and notes every fault. A schema is checked in the order "one of the named values" → "type" → the
--- rest, and later ones are not asked when an earlier one said no: their answers would only repeat it.
--- Does not know about: where schemas come from, defaults, tools.

local keywords = require('mcp-tools.schema.keywords')
local value = require('mcp-tools.schema.value')

local M = {}

---@alias mcp-tools.schema.Check fun(value: any, report?: mcp-tools.schema.Report): boolean

---@class mcp-tools.schema.Compiler
---@field refs mcp-tools.schema.Refs
---@field done table<table, mcp-tools.schema.Check>
---@field depth integer how many references deep the running check is
local Compiler = {}
Compiler.__index = Compiler

--- A value nested deeper than this through references is a circle of Lua tables, not data.
local MAX_DEPTH = 200

--- The keyword groups, each in its file; each is fun(compiler, schema): Check|nil.
local GROUPS = {
  require('mcp-tools.schema.scalars'),
  require('mcp-tools.schema.arrays'),
  require('mcp-tools.schema.objects'),
  require('mcp-tools.schema.logic'),
}

local function always()
  return true
end

local function never(_, report)
  if report then
    report:add('is not allowed')
  end
  return false
end

--- One of the named values.
local function named(allowed)
  local set, tables = {}, {}
  for _, item in ipairs(allowed) do
    if type(item) == 'table' then
      tables[#tables + 1] = item
    else
      set[item] = true
    end
  end
  return function(v, report)
    if set[v] then
      return true
    end
    if type(v) == 'table' then
      for i = 1, #tables do
        if value.equal(v, tables[i]) then
          return true
        end
      end
    end
    if report then
      local words = #allowed == 1 and 'must be ' or 'must be one of '
      report:add(#allowed == 0 and 'has no allowed value' or words .. value.show_list(allowed))
    end
    return false
  end
end

---@type table<string, fun(v: any): boolean>
local is = {
  string = function(v)
    return type(v) == 'string'
  end,
  number = function(v)
    return type(v) == 'number'
  end,
  boolean = function(v)
    return type(v) == 'boolean'
  end,
  null = function(v)
    return v == vim.NIL
  end,
  integer = value.is_integer,
  array = value.is_array,
  object = value.is_object,
}

local function typed(types)
  local test = is[types[1]]
  if #types > 1 then
    local tests = {}
    for i, name in ipairs(types) do
      tests[i] = is[name]
    end
    test = function(v)
      for i = 1, #tests do
        if tests[i](v) then
          return true
        end
      end
      return false
    end
  end
  return function(v, report)
    if test(v) then
      return true
    end
    if report then
      report:add(('must be %s, got %s'):format(table.concat(types, ' or '), value.describe(v)))
    end
    return false
  end
end

--- Checks that each decide alone; the next is not asked after a no.
local function gates(schema)
  local out = {}
  if schema.const ~= nil then
    out[#out + 1] = named({ schema.const })
  end
  if schema.enum then
    out[#out + 1] = named(schema.enum)
  end
  if schema.type then
    out[#out + 1] = typed(keywords.types_of(schema))
  end
  return out
end

---@param first mcp-tools.schema.Check[]
---@param rest mcp-tools.schema.Check[]
---@return mcp-tools.schema.Check
local function joined(first, rest)
  if #first + #rest == 1 then
    return first[1] or rest[1]
  end
  local n_first, n_rest = #first, #rest
  return function(v, report)
    for i = 1, n_first do
      if not first[i](v, report) then
        return false
      end
    end
    local ok = true
    for i = 1, n_rest do
      if not rest[i](v, report) then
        if not report then
          return false
        end
        ok = false
      end
    end
    return ok
  end
end

--- A reference: compiled when it is first followed, because it may lead back up.
function Compiler:reference(target)
  local check
  return function(v, report)
    check = check or self:check(target)
    if self.depth >= MAX_DEPTH then
      if report then
        report:add(('is nested deeper than %d levels'):format(MAX_DEPTH))
      end
      return false
    end
    self.depth = self.depth + 1
    local ok = check(v, report)
    self.depth = self.depth - 1
    return ok
  end
end

--- The check of a schema.
---@param schema table|boolean
---@return mcp-tools.schema.Check
function Compiler:check(schema)
  if type(schema) == 'boolean' then
    return schema and always or never
  end
  if self.done[schema] then
    return self.done[schema]
  end
  local rest = {}
  local target = self.refs.target[schema]
  if target ~= nil then
    rest[1] = self:reference(target)
  end
  for _, group in ipairs(GROUPS) do
    rest[#rest + 1] = group(self, schema)
  end
  local first = gates(schema)
  local check = #first + #rest == 0 and always or joined(first, rest)
  self.done[schema] = check
  return check
end

--- The schema a schema stands for: the target of a bare reference, else itself.
---@param schema table|boolean
---@return table|boolean
function Compiler:resolved(schema)
  local hops = 0
  while type(schema) == 'table' and self.refs.target[schema] ~= nil and not schema.properties and hops < 16 do
    schema = self.refs.target[schema]
    hops = hops + 1
  end
  return schema
end

---@param refs mcp-tools.schema.Refs
---@return mcp-tools.schema.Compiler
function M.new(refs)
  return setmetatable({ refs = refs, done = {}, depth = 0 }, Compiler)
end

return M
