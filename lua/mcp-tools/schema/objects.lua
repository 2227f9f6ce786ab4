--- Keywords about objects: `properties`, `required`, `additionalProperties`, `patternProperties`, `propertyNames` …
---
--- Receives: a schema. Sends: one check for all of these keywords that it has, or nil.
--- Does not know about: other keywords.

local every = require('mcp-tools.schema.every')
local suggest = require('mcp-tools.util.suggest')
local value = require('mcp-tools.schema.value')

--- Surplus properties are answered with the names that exist, when they are this many at most.
local MAX_NAMES = 12
--- Surplus properties of one object that are compared with those that exist, and how many those may be.
local MAX_SUGGESTIONS, MAX_COMPARED = 10, 100
--- An object with more names than this is not sorted to tell its faults.
local MAX_SORTED = 1000

---@return boolean
local function has_more_than(object, max)
  for _ in pairs(object) do
    max = max - 1
    if max < 0 then
      return true
    end
  end
  return false
end

--- The properties of an object; in order when faults are collected, so that they come out the same each time.
local function each(object, report)
  if not report or has_more_than(object, MAX_SORTED) then
    return pairs(object)
  end
  local names, i = value.names(object), 0
  return function()
    i = i + 1
    local name = names[i]
    if name ~= nil then
      return name, object[name]
    end
  end
end

local function count(n)
  return ('%d propert%s'):format(n, n == 1 and 'y' or 'ies')
end

local function required(schema)
  local names = schema.required
  if not names or #names == 0 then
    return nil
  end
  return function(v, report)
    local ok = true
    for i = 1, #names do
      if v[names[i]] == nil then
        if not report then
          return false
        end
        report:add('is required', names[i])
        ok = false
      end
    end
    return ok
  end
end

local function properties(compiler, schema)
  local names, checks = {}, {}
  for i, name in ipairs(value.names(schema.properties or {})) do
    names[i], checks[i] = name, compiler:check(schema.properties[name])
  end
  local n = #names
  if n == 0 then
    return nil
  end
  return function(v, report)
    local ok = true
    compiler:spend(n)
    for i = 1, n do
      local item = v[names[i]]
      if item ~= nil then
        if report then
          report:enter(names[i])
          ok = checks[i](item, report) and ok
          report:leave()
        elseif not checks[i](item) then
          return false
        end
      end
    end
    return ok
  end
end

--- What to say of a property that should not be there.
---@param known string[]
---@param compare boolean
---@return string
local function surplus(name, known, compare)
  if #known == 0 then
    return 'is not allowed'
  end
  local near = compare and #known <= MAX_COMPARED and suggest(name, known)
  if near then
    return ('is not allowed, did you mean %s?'):format(near)
  elseif #known > MAX_NAMES then
    return 'is not allowed'
  end
  return ('is not allowed (allowed: %s)'):format(table.concat(known, ', '))
end

--- Properties by the form of their names, and all others.
local function by_name(compiler, schema)
  local groups = {}
  for _, source in ipairs(value.names(schema.patternProperties or {})) do
    local check = compiler:check(schema.patternProperties[source])
    -- A pattern that cannot be tried may match: such a name is let through.
    groups[#groups + 1] = { matches = compiler:matcher(source), check = check }
  end
  local others = schema.additionalProperties
  local other = others ~= nil and others ~= true and compiler:check(others) or nil
  if #groups == 0 and not other then
    return nil
  end
  local known = schema.properties or {}
  local known_names = value.names(known)
  return function(v, report)
    local ok, told = true, 0
    for name, item in each(v, report) do
      compiler:spend(1 + #groups)
      if report and report.full then
        return false
      end
      local claimed = known[name] ~= nil
      for i = 1, #groups do
        local group = groups[i]
        if not group.matches then
          claimed = true
        elseif type(name) == 'string' and group.matches(name) then
          claimed = true
          if report then
            report:enter(name)
            ok = group.check(item, report) and ok
            report:leave()
          elseif not group.check(item) then
            return false
          end
        end
      end
      if not claimed and other then
        if not report then
          if not other(item) then
            return false
          end
        elseif others == false then
          told = told + 1
          report:add(surplus(tostring(name), known_names, told <= MAX_SUGGESTIONS), name)
          ok = false
        else
          report:enter(name)
          ok = other(item, report) and ok
          report:leave()
        end
      end
    end
    return ok
  end
end

local function property_names(compiler, schema)
  if schema.propertyNames == nil or schema.propertyNames == true then
    return nil
  end
  local check = compiler:check(schema.propertyNames)
  return function(v, report)
    local ok = true
    for name in each(v, report) do
      compiler:spend(1)
      if not check(name) then
        if not report or report.full then
          return false
        end
        local branch = report:branch()
        check(name, branch)
        local why = branch.errors[1]
        report:add('is not allowed as a name' .. (why and ': ' .. why.message or ''), name)
        ok = false
      end
    end
    return ok
  end
end

local function sized(schema)
  if not schema.minProperties and not schema.maxProperties then
    return nil
  end
  local min, max = schema.minProperties or 0, schema.maxProperties or math.huge
  return function(v, report)
    local n = 0
    for _ in pairs(v) do
      n = n + 1
    end
    if n >= min and n <= max then
      return true
    end
    if report then
      report:add(n < min and 'must have at least ' .. count(min) or 'must have at most ' .. count(max))
    end
    return false
  end
end

local function dependent(compiler, schema)
  local schemas, lists = {}, schema.dependentRequired or {}
  for name, sub in pairs(schema.dependentSchemas or {}) do
    schemas[name] = compiler:check(sub)
  end
  if next(schemas) == nil and next(lists) == nil then
    return nil
  end
  return function(v, report)
    local ok = true
    for name, names in each(lists, report) do
      for i = 1, v[name] ~= nil and #names or 0 do
        if v[names[i]] == nil then
          if not report then
            return false
          end
          report:add(('is required when %s is given'):format(name), names[i])
          ok = false
        end
      end
    end
    for name, check in each(schemas, report) do
      if v[name] ~= nil and not check(v, report) then
        if not report then
          return false
        end
        ok = false
      end
    end
    return ok
  end
end

---@param compiler mcp-tools.schema.Compiler
---@param schema table
---@return mcp-tools.schema.Check?
return function(compiler, schema)
  local checks = {}
  checks[#checks + 1] = required(schema)
  checks[#checks + 1] = properties(compiler, schema)
  checks[#checks + 1] = by_name(compiler, schema)
  checks[#checks + 1] = property_names(compiler, schema)
  checks[#checks + 1] = sized(schema)
  checks[#checks + 1] = dependent(compiler, schema)
  if #checks == 0 then
    return nil
  end
  return every(checks, value.is_object)
end
