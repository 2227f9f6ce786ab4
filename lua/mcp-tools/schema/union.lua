--- Unions, `anyOf` and `oneOf`: which branch a value means that fits none of them.
---
--- Receives: the branches, and a value that every one of them refused.
--- Sends: the branch that was meant, where that can be told: the only one for this kind of value, or the one that a
--- property with a fixed value (a discriminator) names. To the report, the faults of that branch; else one fault that
--- says what each alternative misses.
--- Does not know about: whether a value is right; that has been decided.
---
--- What can be said of a kind of value is found out once: a list may have a million items that fit no branch.

local keywords = require('mcp-tools.schema.keywords')
local value = require('mcp-tools.schema.value')

--- Alternatives spelled out in one message, and faults of each.
local MAX_ALTERNATIVES, MAX_FAULTS = 6, 2
--- Unions within unions whose alternatives are spelled out.
local MAX_TRIALS = 2

---@class mcp-tools.schema.Choice what the branches are to one kind of value
---@field indexes integer[] the branches for this kind
---@field property string? the property whose value tells them apart
---@field by_value table<any, integer>? which branch each of its values stands for
---@field allowed any[]? those values

---@class mcp-tools.schema.Union
---@field compiler mcp-tools.schema.Compiler
---@field list (table|boolean)[]
---@field choices table<string, mcp-tools.schema.Choice> by kind of value
---@field names any[]|false|nil every value that is allowed, when the branches are nothing but names
local Union = {}
Union.__index = Union

---@type table<string, fun(v: any): boolean>
local fits_type = {
  object = value.is_object,
  array = value.is_array,
  integer = value.is_integer,
}

--- Whether a branch is for this kind of value.
local function is_for(branch, v)
  if type(branch) == 'boolean' then
    return branch
  end
  local types = keywords.types_of(branch)
  if not types then
    return true
  end
  for _, name in ipairs(types) do
    local test = fits_type[name]
    if test and test(v) or not test and value.kind(v) == name then
      return true
    end
  end
  return false
end

--- Values of one kind are all for the same branches.
---@return string
local function kind_of(v)
  if type(v) == 'number' then
    return value.is_integer(v) and 'integer' or 'number'
  elseif type(v) == 'table' and next(v) == nil and value.is_array(v) and value.is_object(v) then
    return 'empty'
  end
  return value.kind(v)
end

--- The plain values that a schema allows, when it lists them.
---@return any[]?
local function named(compiler, schema)
  schema = schema ~= nil and compiler:resolved(schema)
  if type(schema) ~= 'table' then
    return nil
  end
  local list = schema.const ~= nil and { schema.const } or schema.enum
  for _, item in ipairs(list or {}) do
    if type(item) == 'table' then
      return nil
    end
  end
  return list
end

--- Which branch each value of a property stands for; nil when it does not tell them apart.
local function table_of(compiler, branches, property)
  local by_value, order = {}, {}
  for i, branch in ipairs(branches) do
    local list = named(compiler, (branch.properties or {})[property])
    if not list then
      return nil
    end
    for _, item in ipairs(list) do
      if by_value[item] then
        return nil
      end
      by_value[item] = i
      order[#order + 1] = item
    end
  end
  return by_value, order
end

local function requires(branch, property)
  return vim.tbl_contains(branch.required or {}, property)
end

--- The property whose value tells the branches apart: a required one before others, then by name.
---@return string? property, table<any, integer>? by_value, any[]? allowed
local function discriminator(compiler, branches)
  for _, branch in ipairs(branches) do
    if type(branch) ~= 'table' then
      return nil
    end
  end
  local names = vim.tbl_keys(branches[1] and branches[1].properties or {})
  table.sort(names, function(a, b)
    local a_required, b_required = requires(branches[1], a), requires(branches[1], b)
    if a_required ~= b_required then
      return a_required
    end
    return a < b
  end)
  for _, name in ipairs(names) do
    local by_value, allowed = table_of(compiler, branches, name)
    if by_value then
      return name, by_value, allowed
    end
  end
end

--- What the branches are to a value like this one.
---@param v any
---@return mcp-tools.schema.Choice
function Union:choice(v)
  local kind = kind_of(v)
  local choice = self.choices[kind]
  if not choice then
    local indexes, branches = {}, {}
    for i, schema in ipairs(self.list) do
      local branch = self.compiler:resolved(schema)
      if is_for(branch, v) then
        indexes[#indexes + 1] = i
        branches[#branches + 1] = branch
      end
    end
    choice = { indexes = indexes }
    if #indexes > 1 and value.is_object(v) then
      choice.property, choice.by_value, choice.allowed = discriminator(self.compiler, branches)
    end
    self.choices[kind] = choice
  end
  return choice
end

--- The branch that a value means.
---@param v any
---@return integer? index
function Union:meant(v)
  local choice = self:choice(v)
  if #choice.indexes == 1 then
    return choice.indexes[1]
  end
  local given = choice.property and v[choice.property]
  return given ~= nil and choice.by_value and choice.indexes[choice.by_value[given]] or nil
end

--- All types of all branches.
local function types_of(compiler, list)
  local out, seen = {}, {}
  for _, schema in ipairs(list) do
    local branch = compiler:resolved(schema)
    for _, name in ipairs(type(branch) == 'table' and keywords.types_of(branch) or {}) do
      if not seen[name] then
        seen[name] = true
        out[#out + 1] = name
      end
    end
  end
  return out
end

local function summary(checks, indexes, v, report)
  if report.trials >= MAX_TRIALS then
    return ('fits none of %d alternatives'):format(#checks)
  end
  local parts = {}
  for n = 1, math.min(#indexes, MAX_ALTERNATIVES) do
    local branch = report:branch()
    checks[indexes[n]](v, branch)
    local faults = {}
    for i = 1, math.min(#branch.errors, MAX_FAULTS) do
      faults[i] = branch.errors[i].field .. ' ' .. branch.errors[i].message
    end
    parts[n] = ('(%d) %s%s'):format(
      indexes[n],
      table.concat(faults, ', '),
      #branch.errors > MAX_FAULTS and ', …' or ''
    )
  end
  local rest = #indexes > MAX_ALTERNATIVES and ' …' or ''
  return ('fits none of %d alternatives: %s%s'):format(#checks, table.concat(parts, ' '), rest)
end

--- Every named value of the branches, when all of them are nothing but names.
---@return any[]|false
function Union:all_named()
  if self.names == nil then
    local out = {}
    self.names = out
    for _, branch in ipairs(self.list) do
      local list = named(self.compiler, branch)
      self.names = list and self.names
      vim.list_extend(out, list or {})
    end
    self.names = self.names and #out > 0 and out or false
  end
  return self.names
end

--- Says why a value fits none.
---@param checks mcp-tools.schema.Check[] of the branches
---@param v any
---@param report mcp-tools.schema.Report
function Union:explain(checks, v, report)
  local names = self:all_named()
  if report.full then
    return
  elseif names then
    report:add('must be one of ' .. value.show_list(names))
    return
  end
  local choice = self:choice(v)
  if #choice.indexes == 0 then
    local types = table.concat(types_of(self.compiler, self.list), ' or ')
    report:add(('must be %s, got %s'):format(types, value.describe(v)))
    return
  end
  local property, meant = choice.property, self:meant(v)
  if meant then
    checks[meant](v, report)
  elseif property then
    local words = v[property] == nil and 'is required, one of ' or 'must be one of '
    report:add(words .. value.show_list(choice.allowed), property)
  else
    report:add(summary(checks, choice.indexes, v, report))
  end
end

---@param compiler mcp-tools.schema.Compiler
---@param list (table|boolean)[]
---@return mcp-tools.schema.Union
return function(compiler, list)
  return setmetatable({ compiler = compiler, list = list, choices = {} }, Union)
end
