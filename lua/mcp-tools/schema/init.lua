--- JSON Schema, draft 2020-12, compiled at the first use.
---
--- A value can come from Lua, where a plain empty table is an array or an object, or from JSON (`strict`), where it is
--- an array unless it has `vim.empty_dict()`'s metatable; null is `vim.NIL`.
---
--- `unevaluated*`, `$dynamicRef`, nested `$id` and references other than `#/…` are faults of a schema. `format`,
--- `content*` and unknown keywords are annotations. `validator.unchecked` lists patterns that cannot be translated,
--- which accept every string. A value that cannot be checked in reasonable time is refused.
---
--- The compiler is required inside functions, because schemas are registered while the editor starts.

local faults = require('mcp-tools.schema.faults')
local keywords = require('mcp-tools.schema.keywords')
local value = require('mcp-tools.schema.value')

local NIL, EMPTY_DICT = vim.NIL, getmetatable(vim.empty_dict())

local M = {}

---@class mcp-tools.Validator
---@field schema table|boolean
---@field unchecked mcp-tools.Fault[] patterns that are not checked
---@field private compiler mcp-tools.schema.Compiler?
---@field private plans table<table, mcp-tools.schema.Plan>? set with the compiler
---@field private run integer? number of calls of `fill`
local Validator = {}
Validator.__index = Validator

--- Prepares a run.
---@private
---@param opts? { strict?: boolean, steps?: integer }
---@return mcp-tools.schema.Compiler
function Validator:begin(opts)
  local compiler = self.compiler
  if not compiler then
    compiler = require('mcp-tools.schema.compile').new(faults.targets(self.schema))
    self.compiler, self.plans, self.run = compiler, {}, 0
  end
  compiler:begin(opts)
  return compiler
end

--- Returns all faults of an invalid value.
---@param compiler mcp-tools.schema.Compiler
---@param check mcp-tools.schema.Check
---@param v any
---@param gave_up mcp-tools.Fault? why the first run gave up
---@return mcp-tools.Fault[]
local function faults_of(compiler, check, v, gave_up)
  local report = require('mcp-tools.schema.report').new()
  local finished, fault = compiler:run(report, check, v, report)
  fault = not finished and fault or gave_up
  if fault then
    report:put(fault.field, fault.message)
  end
  return report.errors
end

--- Checks a value.
---@param v any
---@param opts? { strict?: boolean, steps?: integer } `strict`: a plain empty table is an array, as in values from JSON;
---  `steps`: maximum number of steps, about 50 ns each
---@return boolean ok
---@return mcp-tools.Fault[]? errors all faults, if not ok
function Validator:check(v, opts)
  local compiler = self:begin(opts)
  local check = compiler:check(self.schema)
  local finished, result = compiler:run(nil, check, v)
  if finished and result then
    return true
  end
  return false, faults_of(compiler, check, v, not finished and result or nil)
end

-- Defaults, nulls and empty tables -----------------------------------------------------------------------------------
-- Defaults and nulls: only inside `properties`, `additionalProperties`, `items` and `$ref`. Empty tables: also inside
-- `allOf` and the first matching branch of a union.

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

---@private
---@param schema table
---@return mcp-tools.schema.Plan
function Validator:plan(schema)
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
function Validator:default_of(schema)
  local default, target = schema.default, self.compiler:resolved(schema)
  if default == nil and type(target) == 'table' then
    default = target.default
  end
  if default == nil then
    return nil
  end
  local strict = value.strict
  value.strict = false
  default = value.copy(default)
  self:walk(schema, default, 0, false)
  value.strict = strict
  if self.compiler:check(schema)(default) then
    return default
  end
end

---@private
---@param property mcp-tools.schema.PropertyPlan
function Validator:prepare(property)
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
function Validator:fill_property(property, v, depth)
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
function Validator:walk_object(plan, v, depth, fills)
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
function Validator:shape_combined(target, v, depth)
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
function Validator:walk(schema, v, depth, fills)
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

--- Fills in defaults and removes nulls that mean "not set", in place, at every level.
---@param v any a table that may be changed; other values are returned unchanged
---@param opts? { strict?: boolean, steps?: integer } as for `check`
---@return any value the same table
---@return mcp-tools.Fault? fault if it was only partly filled in, because it is too large
function Validator:fill(v, opts)
  if type(v) ~= 'table' then
    return v
  end
  local compiler = self:begin(opts)
  self.run = self.run + 1
  local finished, fault = compiler:run(nil, self.walk, self, self.schema, v, 0, true)
  if finished then
    return v
  end
  return v, fault
end

--- Marks empty tables in a value from Lua as objects where the schema requires it.
---@param v any not changed
---@return any value the value itself if nothing changes, otherwise a copy with `vim.empty_dict()` for empty objects
function Validator:shape(v)
  if not value.is_ambiguous(v) then
    return v
  end
  local copy = value.copy(v)
  self:begin():run(nil, self.walk, self, self.schema, copy, 0, false)
  return copy
end

--- With only these keywords, a default can be checked without compiling the schema, which would delay start-up.
local PLAIN = { type = true, default = true, description = true, minimum = true, maximum = true, enum = true }

---@param schema table
---@return boolean
local function has_simple_valid_default(schema)
  for keyword in pairs(schema) do
    if not PLAIN[keyword] then
      return false
    end
  end
  local default, kind = schema.default, value.kind(schema.default)
  if type(default) == 'table' or schema.enum and not vim.list_contains(schema.enum, default) then
    return false
  elseif
    type(default) == 'number' and (default < (schema.minimum or default) or default > (schema.maximum or default))
  then
    return false
  end
  return schema.type == kind or schema.type == 'integer' and value.is_integer(default)
end

--- Returns why a default does not match its own schema.
---@private
---@return string?
function Validator:misfit(schema)
  local default = schema.default
  if default == nil or default == NIL or has_simple_valid_default(schema) then
    return nil
  end
  local compiler = self:begin()
  local check = compiler:check(schema)
  local copy = value.copy(default)
  local finished, result = compiler:run(nil, function()
    self:walk(schema, copy, 0, false)
    return check(copy)
  end)
  if not (finished and result) then
    return faults_of(compiler, check, copy, not finished and result or nil)[1].message
  end
end

--- Returns a fault for each default that does not match its own schema. Such defaults are never filled in.
---@return mcp-tools.Fault[]
function Validator:misfits()
  local out = {}
  faults.each_schema(self.schema, '', {}, function(schema, path)
    local why = self:misfit(schema)
    if why then
      local message = ('does not match its own schema (%s); it is not filled in'):format(why)
      out[#out + 1] = { field = keywords.join(path, 'default'), message = message }
    end
  end)
  return out
end

--- Returns the patterns that cannot be translated.
---@return mcp-tools.Fault[]
local function unchecked_of(schema)
  local out = {}
  local function try(source, field)
    local translated, why = require('mcp-tools.util.regex').translate(source)
    if not translated then
      out[#out + 1] = { field = field, message = 'the pattern is not checked: ' .. why }
    end
  end
  faults.each_schema(schema, '', {}, function(part, path)
    if part.pattern then
      try(part.pattern, keywords.join(path, 'pattern'))
    end
    for source in pairs(part.patternProperties or {}) do
      try(source, keywords.join(keywords.join(path, 'patternProperties'), source))
    end
  end)
  table.sort(out, function(a, b)
    return a.field < b.field
  end)
  return out
end

--- Creates a validator for a schema without faults (faults.lua).
---@param sound table|boolean must not be changed later
---@return mcp-tools.Validator
function M.compile_sound(sound)
  return setmetatable({ schema = sound, unchecked = unchecked_of(sound) }, Validator)
end

--- Creates a validator.
---@param json_schema table|boolean must not be changed later
---@return mcp-tools.Validator?
---@return mcp-tools.Fault[]? faults of the schema, if it is invalid
function M.compile(json_schema)
  local found = faults.find(json_schema)
  if #found > 0 then
    return nil, found
  end
  return M.compile_sound(json_schema)
end

return M
