--- Fills in defaults, and takes out nulls that stand for "not given".
---
--- Receives: a schema, its references and its compiled checks.
--- Sends: `fill(value)`, which changes the value in place, at every level of `properties` that the value has.
--- Does not know about: whether the value is right (that is checked after), tools.
---
--- Plans are made when they are first run, so a recursive schema ends where the value ends.

local keywords = require('mcp-tools.schema.keywords')
local shape = require('mcp-tools.schema.shape')
local union = require('mcp-tools.schema.union')
local value = require('mcp-tools.schema.value')

local M = {}

local NIL = vim.NIL
--- A value nested deeper is a circle of Lua tables, not data; the check after this says so.
local MAX_DEPTH = 200
local EMPTY_DICT = getmetatable(vim.empty_dict())

---@alias mcp-tools.schema.Plan fun(v: table)

---@class mcp-tools.schema.FillProperty
---@field name string
---@field default any
---@field drop_null boolean null is not allowed here and nothing requires the property
---@field plans mcp-tools.schema.Plan[]
---@field busy boolean its default is being filled: a default does not come again within itself

---@class mcp-tools.schema.Filler
---@field compiler mcp-tools.schema.Compiler
---@field plans table<table, mcp-tools.schema.Plan>
---@field depth integer how many plans deep the running fill is
local Filler = {}
Filler.__index = Filler

local function nothing() end

--- The schemas that check the same value without condition: itself, its reference, its allOf.
---@param schema table|boolean|nil
---@return table[]
function Filler:facets(schema, out, seen)
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

--- The first default that its own schema accepts.
function Filler:default_of(schemas)
  for _, schema in ipairs(schemas) do
    for _, facet in ipairs(self:facets(schema, {}, {})) do
      local default = shape(facet.default, facet)
      if default ~= nil and self.compiler:check(schema)(default) then
        return default
      end
    end
  end
end

---@param facets table[] of the object
---@return mcp-tools.schema.FillProperty[]
function Filler:properties(facets)
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
    local default = self:default_of(by_name[name])
    local null, plans = true, {}
    for j, schema in ipairs(by_name[name]) do
      null = null and self.compiler:check(schema)(NIL)
      plans[j] = self:plan(schema)
    end
    local drop_null = not null and (not required[name] or default ~= nil)
    out[i] = { name = name, default = default, drop_null = drop_null, plans = plans, busy = false }
  end
  return out
end

local function run_all(plans, v)
  for i = 1, #plans do
    plans[i](v)
  end
end

---@param p mcp-tools.schema.FillProperty
local function fill_property(p, v)
  local item = v[p.name]
  if item == NIL and p.drop_null then
    v[p.name], item = nil, nil
  end
  if item ~= nil then
    if type(item) == 'table' then
      run_all(p.plans, item)
    end
  elseif p.default ~= nil and not p.busy then
    item = value.copy(p.default)
    v[p.name] = item
    if type(item) == 'table' then
      p.busy = true
      run_all(p.plans, item)
      p.busy = false
    end
  end
end

---@param facets table[]
---@return mcp-tools.schema.Plan
function Filler:object_plan(facets)
  local properties, others = self:properties(facets), {}
  for _, facet in ipairs(facets) do
    if type(facet.additionalProperties) == 'table' then
      others[#others + 1] = { known = facet.properties or {}, plan = self:plan(facet.additionalProperties) }
    end
  end
  return function(v)
    for i = 1, #properties do
      fill_property(properties[i], v)
    end
    for _, other in ipairs(others) do
      for name, item in pairs(v) do
        if type(item) == 'table' and other.known[name] == nil then
          other.plan(item)
        end
      end
    end
  end
end

---@param facets table[]
---@return mcp-tools.schema.Plan
function Filler:array_plan(facets)
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

--- Fills by the branch of a union that the value takes, or would take.
---@param list (table|boolean)[]
---@return mcp-tools.schema.Plan
function Filler:union_plan(list)
  local plans, checks = {}, {}
  for i, schema in ipairs(list) do
    plans[i], checks[i] = self:plan(schema), self.compiler:check(schema)
  end
  return function(v)
    for i = 1, #checks do
      if checks[i](v) then
        return plans[i](v)
      end
    end
    local indexes, branches = union.fitting(self.compiler, list, v)
    if #indexes == 1 then
      return plans[indexes[1]](v)
    end
    local property, by_value = union.discriminator(self.compiler, branches)
    local given = property and v[property]
    local meant = given ~= nil and by_value and by_value[given]
    if meant then
      plans[indexes[meant]](v)
    end
  end
end

---@param schema table with `if`
---@return mcp-tools.schema.Plan
function Filler:condition_plan(schema)
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
  for _, facet in ipairs(facets) do
    local types = keywords.types_of(facet)
    if types then
      return vim.tbl_contains(types, 'object') and not vim.tbl_contains(types, 'array')
    end
  end
  return false
end

---@param schema table
---@return mcp-tools.schema.Plan
function Filler:make(schema)
  local facets = self:facets(schema, {}, {})
  local object, array = self:object_plan(facets), self:array_plan(facets)
  local may_be_object = wants_object(facets)
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
      if may_be_object or getmetatable(v) == EMPTY_DICT then
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

--- What fills the values of a schema.
---@param schema table|boolean|nil
---@return mcp-tools.schema.Plan
function Filler:plan(schema)
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

---@param compiler mcp-tools.schema.Compiler
---@return mcp-tools.schema.Filler
function M.new(compiler)
  return setmetatable({ compiler = compiler, plans = {}, depth = 0 }, Filler)
end

return M
