--- Compiles the keywords that combine schemas: `allOf`, `anyOf`, `oneOf`, `not`, `if`.
---
--- If no branch of a union matches, the faults of the most likely branch are reported: the only one for this type of
--- value, or the one selected by a discriminator, a property with a different fixed value in each branch.

local fail = require('mcp-tools.schema.checks').fail
local every = require('mcp-tools.schema.checks').every
local keywords = require('mcp-tools.schema.keywords')
local value = require('mcp-tools.schema.value')

-- Faults of unions -------------------------------------------------------------------------------------------------

--- Returns whether a branch is for values of this type.
local function is_for(branch, v)
  if type(branch) == 'boolean' then
    return branch
  end
  local types = keywords.types_of(branch)
  return not types
    or vim.list_contains(types, value.kind(v))
    or vim.list_contains(types, 'integer') and value.is_integer(v)
    or vim.list_contains(types, 'object') and value.is_object(v)
end

--- Returns the values of `const` or `enum`; nil if the schema has neither or some values are tables.
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

--- Maps each value of a property to a branch; nil if the property is not a discriminator.
---@return table<any, integer>? by_value
---@return any[]? allowed
local function branches_by(compiler, branches, property)
  local by_value, allowed = {}, {}
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
      allowed[#allowed + 1] = item
    end
  end
  return by_value, allowed
end

--- Finds the discriminator: required properties first, then by name.
---@return string? property, table<any, integer>? by_value, any[]? allowed
local function discriminator(compiler, branches)
  local required = {}
  for _, branch in ipairs(branches) do
    if type(branch) ~= 'table' then
      return nil
    end
    required = branch.required or {}
  end
  local names = value.names(branches[1].properties or {})
  for _, wanted in ipairs({ true, false }) do
    for _, name in ipairs(names) do
      if vim.list_contains(required, name) == wanted then
        local by_value, allowed = branches_by(compiler, branches, name)
        if by_value then
          return name, by_value, allowed
        end
      end
    end
  end
end

--- Reports why a value matches no branch.
---@param compiler mcp-tools.schema.Compiler
---@param list (table|boolean)[]
---@param checks mcp-tools.schema.Check[] of the branches
---@param v any
---@param report mcp-tools.schema.Report
local function explain(compiler, list, checks, v, report)
  if report.full then
    return
  end
  local indexes, branches, types, names = {}, {}, {}, {}
  for i, schema in ipairs(list) do
    local branch = compiler:resolved(schema)
    local values = names and named(compiler, branch)
    names = values and vim.list_extend(names, values)
    for _, name in ipairs(type(branch) == 'table' and keywords.types_of(branch) or {}) do
      if not vim.list_contains(types, name) then
        types[#types + 1] = name
      end
    end
    if is_for(branch, v) then
      indexes[#indexes + 1], branches[#branches + 1] = i, branch
    end
  end
  if names then
    return report:add('must be one of ' .. value.show_list(names))
  elseif #indexes == 0 then
    return report:add(('must be %s, got %s'):format(table.concat(types, ' or '), value.describe(v)))
  elseif #indexes == 1 then
    checks[indexes[1]](v, report)
    return
  end
  local property, by_value, allowed
  if value.is_object(v) then
    property, by_value, allowed = discriminator(compiler, branches)
  end
  local given = property and v[property]
  if not property then
    report:add(('fits none of %d alternatives'):format(#list))
  elseif by_value[given] then
    checks[indexes[by_value[given]]](v, report)
  else
    local words = given == nil and 'is required, one of ' or 'must be one of '
    report:add(words .. value.show_list(allowed), property)
  end
end

-- Checks -----------------------------------------------------------------------------------------------------------

---@param compiler mcp-tools.schema.Compiler
---@param list (table|boolean)[]
---@return mcp-tools.schema.Check[]
local function checks_of(compiler, list)
  local out = {}
  for i, schema in ipairs(list) do
    out[i] = compiler:check(schema)
  end
  return out
end

local function all_of(compiler, schema)
  local checks = checks_of(compiler, schema.allOf)
  local all = every(checks)
  return function(v, report)
    compiler:spend(#checks)
    return all(v, report)
  end
end

--- Compiles `anyOf` or `oneOf`.
---@param compiler mcp-tools.schema.Compiler
---@param list (table|boolean)[]
---@param is_one boolean
local function union(compiler, list, is_one)
  local checks = checks_of(compiler, list)
  return function(v, report)
    compiler:spend(#checks)
    local first
    for i = 1, #checks do
      if checks[i](v) then
        if not is_one then
          return true
        elseif first then
          local text = 'must match exactly one of %d alternatives, matches %d and %d'
          return fail(report, nil, text, #checks, first, i)
        end
        first = i
      end
    end
    if not first and report then
      explain(compiler, list, checks, v, report)
    end
    return first ~= nil
  end
end

local function none_of(compiler, schema)
  local check = compiler:check(schema['not'])
  return function(v, report)
    return not check(v) or fail(report, nil, 'is not allowed (`not`)')
  end
end

local function condition(compiler, schema)
  local test = compiler:check(schema['if'])
  local yes = schema['then'] ~= nil and compiler:check(schema['then']) or nil
  local no = schema['else'] ~= nil and compiler:check(schema['else']) or nil
  return (yes or no)
      and function(v, report)
        local branch = no
        if test(v) then
          branch = yes
        end
        return not branch or branch(v, report)
      end
    or nil
end

---@param compiler mcp-tools.schema.Compiler
---@param schema table
---@param rest mcp-tools.schema.Check[] the checks are appended to it
return function(compiler, schema, rest)
  rest[#rest + 1] = schema.allOf and all_of(compiler, schema) or nil
  rest[#rest + 1] = schema.anyOf and union(compiler, schema.anyOf, false) or nil
  rest[#rest + 1] = schema.oneOf and union(compiler, schema.oneOf, true) or nil
  rest[#rest + 1] = schema['not'] ~= nil and none_of(compiler, schema) or nil
  rest[#rest + 1] = schema['if'] ~= nil and condition(compiler, schema) or nil
end
