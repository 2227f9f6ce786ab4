--- Plans: one function per schema that goes through a value, wherever the value and the schema lead, and changes it.
---
--- Receives: a schema, its references and its compiled checks; a visitor, which says what is changed (fill.lua,
--- shape.lua).
--- Sends: `run(schema, value)`, which changes the value in place, at every level of `properties`, `items` … that it
--- has.
--- Does not know about: what is changed, whether the value is right.
---
--- Plans are made when they are first run, so a recursive schema ends where the value ends.

local keywords = require('mcp-tools.schema.keywords')
local new_union = require('mcp-tools.schema.union')
local value = require('mcp-tools.schema.value')

--- A value nested deeper is a circle of Lua tables, not data; the check after this says so.
local MAX_DEPTH = 200
local EMPTY_DICT = getmetatable(vim.empty_dict())

---@alias mcp-tools.schema.Plan fun(v: table)

--- What is done with values on the way.
---@class mcp-tools.schema.Visitor
---@field property fun(self, plans: mcp-tools.schema.Plans, name: string, schemas: table, required: boolean): function
---  makes the plan of one property of an object, which all of `schemas` are about
---@field empty fun(self, v: table, wanted: boolean): boolean whether an empty table is to be gone into as an object;
---  wanted: as far as the schema goes, it is one

---@class mcp-tools.schema.Plans
---@field compiler mcp-tools.schema.Compiler
---@field visitor mcp-tools.schema.Visitor
---@field plans table<table, mcp-tools.schema.Plan>
---@field depth integer how many plans deep the run is
---@field turn integer which run it is
local Plans = {}
Plans.__index = Plans

local function nothing() end

local function run_all(plans, v)
  for i = 1, #plans do
    plans[i](v)
  end
end

--- The schemas that check the same value without condition: itself, its reference, its allOf.
---@param schema table|boolean|nil
---@return table[]
function Plans:facets(schema, out, seen)
  if type(schema) ~= 'table' or seen[schema] then
    return out
  end
  seen[schema] = true
  out[#out + 1] = schema
  self:facets(self.compiler.refs.target[schema], out, seen)
  for _, part in ipairs(schema.allOf or {}) do
    self:facets(part, out, seen)
  end
  return out
end

--- What goes into a value that all of these schemas are about.
---@param schemas (table|boolean)[]
---@return mcp-tools.schema.Plan
function Plans:inside(schemas)
  if #schemas == 1 then
    return self:plan(schemas[1])
  end
  local plans = {}
  for i, schema in ipairs(schemas) do
    plans[i] = self:plan(schema)
  end
  return function(v)
    run_all(plans, v)
  end
end

--- What is done with each property that the schemas name, in the order of the names.
---@param facets table[]
---@return mcp-tools.schema.Plan[]
function Plans:properties(facets)
  local by_name, required = {}, {}
  for _, facet in ipairs(facets) do
    for name, schema in pairs(facet.properties or {}) do
      by_name[name] = by_name[name] or {}
      table.insert(by_name[name], schema)
    end
    for _, name in ipairs(facet.required or {}) do
      required[name] = true
    end
  end
  local out = {}
  for i, name in ipairs(value.names(by_name)) do
    out[i] = self.visitor:property(self, name, by_name[name], required[name] == true)
  end
  return out
end

--- What is done with properties that one schema does not name.
---@param facet table
---@return fun(name: any, item: table)?
function Plans:others_plan(facet)
  local groups, known = {}, facet.properties or {}
  for _, source in ipairs(value.names(facet.patternProperties or {})) do
    groups[#groups + 1] = {
      matches = self.compiler:matcher(source),
      plan = self:plan(facet.patternProperties[source]),
    }
  end
  if #groups == 0 and type(facet.additionalProperties) ~= 'table' then
    return nil
  end
  local rest = self:plan(facet.additionalProperties)
  return function(name, item)
    local claimed = known[name] ~= nil
    for i = 1, #groups do
      local matches = groups[i].matches
      if not matches then
        claimed = true
      elseif type(name) == 'string' and matches(name) then
        claimed = true
        groups[i].plan(item)
      end
    end
    if not claimed then
      rest(item)
    end
  end
end

---@param facets table[]
---@return mcp-tools.schema.Plan
function Plans:object_plan(facets)
  local properties, others = self:properties(facets), {}
  for _, facet in ipairs(facets) do
    others[#others + 1] = self:others_plan(facet)
  end
  return function(v)
    self.compiler:spend(#properties)
    run_all(properties, v)
    for i = 1, #others do
      for name, item in pairs(v) do
        if type(item) == 'table' then
          others[i](name, item)
        end
      end
    end
  end
end

---@param facets table[]
---@return mcp-tools.schema.Plan
function Plans:array_plan(facets)
  local prefix, items = {}, {}
  for _, facet in ipairs(facets) do
    local n = #(facet.prefixItems or {})
    for i = 1, n do
      prefix[i] = prefix[i] or {}
      table.insert(prefix[i], self:plan(facet.prefixItems[i]))
    end
    if type(facet.items) == 'table' then
      items[#items + 1] = { after = n, plan = self:plan(facet.items) }
    end
  end
  return function(v)
    self.compiler:spend(#v)
    for i = 1, #v do
      local item = v[i]
      if type(item) == 'table' then
        run_all(prefix[i] or {}, item)
        for j = 1, #items do
          if i > items[j].after then
            items[j].plan(item)
          end
        end
      end
    end
  end
end

--- Goes on with the branch of a union that the value takes, or would take.
---@param list (table|boolean)[]
---@return mcp-tools.schema.Plan
function Plans:union_plan(list)
  local plans, checks, union = {}, {}, new_union(self.compiler, list)
  for i, schema in ipairs(list) do
    plans[i], checks[i] = self:plan(schema), self.compiler:check(schema)
  end
  return function(v)
    self.compiler:spend(#checks)
    for i = 1, #checks do
      if checks[i](v) then
        return plans[i](v)
      end
    end
    local meant = union:meant(v)
    if meant then
      plans[meant](v)
    end
  end
end

---@param schema table with `if`
---@return mcp-tools.schema.Plan
function Plans:condition_plan(schema)
  local test = self.compiler:check(schema['if'])
  local yes, no = self:plan(schema['then']), self:plan(schema['else'])
  return function(v)
    if test(v) then
      yes(v)
    else
      no(v)
    end
  end
end

--- Whether a table with nothing in it, and nothing said of its kind, can only be meant as an object.
local function wants_object(facets)
  local has_properties = false
  for _, facet in ipairs(facets) do
    local types = keywords.types_of(facet)
    if types then
      return vim.list_contains(types, 'object') and not vim.list_contains(types, 'array')
    end
    has_properties = has_properties or facet.properties ~= nil
  end
  return has_properties
end

---@param schema table
---@return mcp-tools.schema.Plan
function Plans:make(schema)
  local facets = self:facets(schema, {}, {})
  local object, array = self:object_plan(facets), self:array_plan(facets)
  local wanted = wants_object(facets)
  local later = {}
  for _, facet in ipairs(facets) do
    for _, keyword in ipairs({ 'anyOf', 'oneOf' }) do
      if facet[keyword] then
        later[#later + 1] = self:union_plan(facet[keyword])
      end
    end
    if facet['if'] ~= nil then
      later[#later + 1] = self:condition_plan(facet)
    end
  end
  return function(v)
    if next(v) == nil then
      if getmetatable(v) == EMPTY_DICT or self.visitor:empty(v, wanted) then
        object(v)
      end
    elseif value.is_array(v) then
      array(v)
    else
      object(v)
    end
    run_all(later, v)
  end
end

--- What goes through the values of a schema.
---@param schema table|boolean|nil
---@return mcp-tools.schema.Plan
function Plans:plan(schema)
  if type(schema) ~= 'table' then
    return nothing
  end
  if not self.plans[schema] then
    local made
    self.plans[schema] = function(v)
      made = made or self:make(schema)
      if self.depth < MAX_DEPTH then
        self.depth = self.depth + 1
        made(v)
        self.depth = self.depth - 1
      end
    end
  end
  return self.plans[schema]
end

--- Goes through a value. It may give up in the middle (compile.lua).
---@param schema table|boolean
---@param v any
---@return any value the same
function Plans:run(schema, v)
  if type(v) == 'table' then
    self.depth, self.turn = 0, self.turn + 1
    self:plan(schema)(v)
  end
  return v
end

---@param compiler mcp-tools.schema.Compiler
---@param visitor mcp-tools.schema.Visitor
---@return mcp-tools.schema.Plans
return function(compiler, visitor)
  return setmetatable({ compiler = compiler, visitor = visitor, plans = {}, depth = 0, turn = 0 }, Plans)
end
