--- Completes a value in place, at every level: fills in defaults, removes nulls that mean "not set", and marks empty
--- tables as objects where the schema requires it.
---
--- Defaults and nulls: only inside `properties`, `additionalProperties`, `items` and `$ref`. Empty tables: also inside
--- `allOf` and the first matching branch of a union.

local keywords = require('mcp-tools.schema.keywords')
local value = require('mcp-tools.schema.value')

local NIL = vim.NIL
local EMPTY_DICT = getmetatable(vim.empty_dict())
--- Maximum depth. A deeper value is a cycle of Lua tables, which the later check reports.
local MAX_DEPTH = 200
--- Steps that filling in a default costs.
local STEPS = 10

---@class mcp-tools.schema.PropertyPlan
---@field name string
---@field schema table|boolean
---@field required boolean
---@field known boolean? `default` and `drops_null` are set
---@field default any
---@field drops_null boolean?
---@field busy integer? run in which the default is being filled in; prevents endless recursion

---@class mcp-tools.schema.Plan
---@field target table the schema, with its reference resolved
---@field properties mcp-tools.schema.PropertyPlan[]
---@field others table? schema of all other properties
---@field is_object boolean an empty table can only be an object

---@class mcp-tools.schema.Filler
---@field private compiler mcp-tools.schema.Compiler
---@field private plans table<table, mcp-tools.schema.Plan>
---@field private run integer
local Filler = {}
Filler.__index = Filler

---@private
---@param schema table
---@return mcp-tools.schema.Plan
function Filler:plan(schema)
  local plan = self.plans[schema]
  if plan then
    return plan
  end
  local target = self.compiler:resolved(schema)
  target = type(target) == 'table' and target or {}
  local types = keywords.types_of(target)
  plan = { target = target, properties = {}, is_object = target.properties ~= nil }
  if type(target.additionalProperties) == 'table' and not target.patternProperties then
    plan.others = target.additionalProperties
  end
  if types then
    plan.is_object = vim.list_contains(types, 'object') and not vim.list_contains(types, 'array')
  end
  for i, name in ipairs(value.names(target.properties or {})) do
    local required = vim.list_contains(target.required or {}, name)
    plan.properties[i] = { name = name, schema = target.properties[name], required = required }
  end
  self.plans[schema] = plan
  return plan
end

--- Returns the default of a property, if its own schema accepts it.
---@private
---@param schema table
---@return any
function Filler:default_of(schema)
  local default, target = schema.default, self.compiler:resolved(schema)
  if default == nil and type(target) == 'table' then
    default = target.default
  end
  if default == nil then
    return nil
  end
  local strict = value.strict
  value.strict = false
  default = self:shape(schema, value.copy(default))
  value.strict = strict
  if self.compiler:check(schema)(default) then
    return default
  end
end

---@private
---@param property mcp-tools.schema.PropertyPlan
function Filler:prepare(property)
  local schema, default = property.schema, nil
  if type(schema) == 'table' then
    default = self:default_of(schema)
  end
  property.default = default
  property.drops_null = (not property.required or default ~= nil) and not self.compiler:check(schema)(NIL)
  property.known = true
end

---@private
---@param property mcp-tools.schema.PropertyPlan
---@param v table the object
---@param depth integer
function Filler:fill_property(property, v, depth)
  if not property.known then
    self:prepare(property)
  end
  local name = property.name
  local item = v[name]
  if item == NIL and property.drops_null then
    v[name], item = nil, nil
  end
  if item ~= nil then
    return self:walk(property.schema, item, depth, true)
  elseif property.default ~= nil and property.busy ~= self.run then
    self.compiler:spend(STEPS)
    item = value.copy(property.default)
    v[name] = item
    property.busy = self.run
    self:walk(property.schema, item, depth, true)
    property.busy = nil
  end
end

---@private
---@param plan mcp-tools.schema.Plan
---@param v table
---@param depth integer
---@param fills boolean
function Filler:walk_object(plan, v, depth, fills)
  local properties = plan.properties
  self.compiler:spend(#properties)
  for i = 1, #properties do
    if fills then
      self:fill_property(properties[i], v, depth)
    else
      self:walk(properties[i].schema, v[properties[i].name], depth, false)
    end
  end
  for name, item in pairs(plan.others and v or {}) do
    if type(item) == 'table' and (plan.target.properties or {})[name] == nil then
      self:walk(plan.others, item, depth, fills)
    end
  end
end

--- Marks empty tables as the parts of a combined schema require.
---@private
---@param target table
---@param v table
---@param depth integer
function Filler:shape_combined(target, v, depth)
  for _, part in ipairs(target.allOf or {}) do
    self:walk(part, v, depth, false)
  end
  for _, branch in ipairs(target.anyOf or target.oneOf or {}) do
    if self.compiler:check(branch)(v) then
      return self:walk(branch, v, depth, false)
    end
  end
end

---@private
---@param schema table|boolean|nil
---@param v any
---@param depth integer
---@param fills boolean if false, only empty tables are changed
function Filler:walk(schema, v, depth, fills)
  if type(v) ~= 'table' or type(schema) ~= 'table' or depth > MAX_DEPTH then
    return
  end
  local plan = self:plan(schema)
  local is_empty = next(v) == nil and getmetatable(v) ~= EMPTY_DICT
  if is_empty and plan.is_object and not fills then
    setmetatable(v, EMPTY_DICT)
  elseif is_empty and plan.is_object and not value.strict or not value.is_array(v) then
    self:walk_object(plan, v, depth + 1, fills)
  elseif type(plan.target.items) == 'table' then
    self.compiler:spend(#v)
    for i = 1, #v do
      self:walk(plan.target.items, v[i], depth + 1, fills)
    end
  end
  if not fills then
    self:shape_combined(plan.target, v, depth + 1)
  end
end

--- Fills in defaults and removes nulls. May give up halfway (compile.lua).
---@param schema table|boolean
---@param v any
function Filler:fill(schema, v)
  self.run = self.run + 1
  self:walk(schema, v, 0, true)
end

--- Marks empty tables as objects where the schema requires it.
---@param schema table|boolean
---@param v any
---@return any value the same
function Filler:shape(schema, v)
  self:walk(schema, v, 0, false)
  return v
end

local M = {}

---@param compiler mcp-tools.schema.Compiler
---@return mcp-tools.schema.Filler
function M.new(compiler)
  return setmetatable({ compiler = compiler, plans = {}, run = 0 }, Filler)
end

return M
