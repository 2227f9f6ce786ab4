--- Words the fault of a value that fits no branch of `anyOf` or `oneOf`.
---
--- Receives: the branches, and a value that every one of them refused.
--- Sends: to the report, the faults of the one branch that was meant, where that can be told: the only one for this
--- kind of value, or the one that a property with a fixed value (a discriminator) names. Else one fault that
--- says what each alternative misses.
--- Does not know about: whether a value is right; that has been decided.

local keywords = require('mcp-tools.schema.keywords')
local value = require('mcp-tools.schema.value')

local M = {}

--- Alternatives spelled out in one message, and faults of each.
local MAX_ALTERNATIVES, MAX_FAULTS = 6, 2

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
function M.discriminator(compiler, branches)
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

--- The branches for this kind of value.
---@return integer[] indexes, table[] branches
function M.fitting(compiler, list, v)
  local indexes, branches = {}, {}
  for i, schema in ipairs(list) do
    local branch = compiler:resolved(schema)
    if is_for(branch, v) then
      indexes[#indexes + 1] = i
      branches[#branches + 1] = branch
    end
  end
  return indexes, branches
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
local function all_named(compiler, branches)
  local out = {}
  for _, branch in ipairs(branches) do
    local list = named(compiler, branch)
    if not list then
      return nil
    end
    vim.list_extend(out, list)
  end
  return #out > 0 and out or nil
end

---@param compiler mcp-tools.schema.Compiler
---@param list (table|boolean)[]
---@param checks mcp-tools.schema.Check[]
---@return fun(v: any, report: mcp-tools.schema.Report)
function M.explainer(compiler, list, checks)
  return function(v, report)
    local names = all_named(compiler, list)
    if names then
      report:add('must be one of ' .. value.show_list(names))
      return
    end
    local indexes, branches = M.fitting(compiler, list, v)
    if #indexes == 0 then
      report:add(('must be %s, got %s'):format(table.concat(types_of(compiler, list), ' or '), value.describe(v)))
      return
    end
    local meant = #indexes == 1 and indexes[1] or nil
    if not meant and value.is_object(v) then
      local property, by_value, allowed = M.discriminator(compiler, branches)
      local given = property and v[property]
      if property and given == nil then
        report:add('is required, one of ' .. value.show_list(allowed), property)
        return
      elseif property and not by_value[given] then
        report:add('must be one of ' .. value.show_list(allowed), property)
        return
      end
      meant = property and indexes[by_value[given]]
    end
    if meant then
      checks[meant](v, report)
    else
      report:add(summary(checks, indexes, v, report))
    end
  end
end

return M
