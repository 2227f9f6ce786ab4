--- Compiles the keywords for strings, numbers, arrays and objects.
---
--- Each function compiles the keywords of its group to one check, or returns nil if the schema has none of them.

local canonical_json = require('mcp-tools.util.canonical_json')
local suggest = require('mcp-tools.util.suggest')
local value = require('mcp-tools.schema.value')
local Report = require('mcp-tools.schema.report')

local floor, abs, huge = math.floor, math.abs, math.huge

local function count(n, what, plural)
  return ('%d %s'):format(n, n == 1 and what or plural or what .. 's')
end

--- Combines checks. Runs all of them if there is a report, otherwise stops at the first failure.
---@param checks mcp-tools.schema.Check[]
---@param applies? fun(v: any): boolean other values are valid
---@return mcp-tools.schema.Check
local function every(checks, applies)
  local n = #checks
  return function(v, report)
    if applies and not applies(v) then
      return true
    end
    local ok = true
    for i = 1, n do
      if not checks[i](v, report) then
        if not report then
          return false
        end
        ok = false
      end
    end
    return ok
  end
end

-- Strings and numbers ----------------------------------------------------------------------------------------------

--- Relative rounding error of one division and its two operands.
local EPSILON = 4 * 2 ^ -52

local function is_multiple(v, divisor)
  local quotient = v / divisor
  if quotient == floor(quotient) and abs(quotient) ~= huge then
    return true
  elseif abs(quotient) == huge then
    return math.fmod(v, divisor) == 0
  elseif v == floor(v) and divisor == floor(divisor) then
    return false -- whole numbers are exact
  end
  return abs(quotient - floor(quotient + 0.5)) <= EPSILON * abs(quotient)
end

---@class mcp-tools.schema.ScalarRule
---@field keyword string
---@field test fun(v: any, limit: any): boolean
---@field say fun(limit: any): string

--- In the order in which faults are reported.
---@type mcp-tools.schema.ScalarRule[]
local NUMBERS = {
  {
    keyword = 'minimum',
    test = function(v, limit)
      return v >= limit
    end,
    say = function(limit)
      return 'must be at least ' .. value.show(limit)
    end,
  },
  {
    keyword = 'maximum',
    test = function(v, limit)
      return v <= limit
    end,
    say = function(limit)
      return 'must be at most ' .. value.show(limit)
    end,
  },
  {
    keyword = 'exclusiveMinimum',
    test = function(v, limit)
      return v > limit
    end,
    say = function(limit)
      return 'must be more than ' .. value.show(limit)
    end,
  },
  {
    keyword = 'exclusiveMaximum',
    test = function(v, limit)
      return v < limit
    end,
    say = function(limit)
      return 'must be less than ' .. value.show(limit)
    end,
  },
  {
    keyword = 'multipleOf',
    test = is_multiple,
    say = function(divisor)
      return 'must be a multiple of ' .. value.show(divisor)
    end,
  },
}

---@type mcp-tools.schema.ScalarRule[]
local STRINGS = {
  {
    keyword = 'minLength',
    test = function(v, limit)
      -- A character has at most 4 bytes, so most strings need not be counted.
      return #v >= limit and (#v >= 4 * limit or value.length(v) >= limit)
    end,
    say = function(limit)
      return 'must have at least ' .. count(limit, 'character')
    end,
  },
  {
    keyword = 'maxLength',
    test = function(v, limit)
      return #v <= limit or (#v <= 4 * limit and value.length(v) <= limit)
    end,
    say = function(limit)
      return 'must have at most ' .. count(limit, 'character')
    end,
  },
}

--- Compiles the limits for values of one Lua type.
---@param schema table
---@param rules mcp-tools.schema.ScalarRule[]
---@param of type
---@return mcp-tools.schema.Check?
local function limits(schema, rules, of)
  local used, n = {}, 0
  for _, rule in ipairs(rules) do
    if schema[rule.keyword] ~= nil then
      n = n + 1
      used[n] = rule
    end
  end
  return n > 0
      and function(v, report)
        if type(v) ~= of then
          return true
        end
        local ok = true
        for i = 1, n do
          local rule = used[i]
          local limit = schema[rule.keyword]
          if not rule.test(v, limit) then
            if not report then
              return false
            end
            report:add(rule.say(limit))
            ok = false
          end
        end
        return ok
      end
    or nil
end

--- A pattern that cannot be translated accepts every string; the validator lists it in `unchecked`.
---@return mcp-tools.schema.Check?
local function pattern(compiler, schema)
  local matches = schema.pattern and compiler:matcher(schema.pattern)
  return matches
      and function(v, report)
        if type(v) ~= 'string' or matches(v) then
          return true
        elseif report then
          report:add('must match the pattern ' .. schema.pattern)
        end
        return false
      end
    or nil
end

-- Arrays -----------------------------------------------------------------------------------------------------------

--- Steps for each byte of an item that is compared with others.
local STEPS_OF_BYTE = 4

--- Compiles `prefixItems` and `items`.
local function items(compiler, schema)
  local prefix = {}
  for i, item in ipairs(schema.prefixItems or {}) do
    prefix[i] = compiler:check(item)
  end
  local rest = schema.items ~= nil and schema.items ~= true and compiler:check(schema.items) or nil
  local closed = schema.items == false
  local n_prefix = #prefix
  if n_prefix == 0 and not rest then
    return nil
  end
  return function(v, report)
    local ok = true
    if closed and #v > n_prefix then
      if report then
        report:add(n_prefix == 0 and 'must be empty' or 'must have at most ' .. count(n_prefix, 'item'))
      end
      ok = false
    end
    local n = (closed or not rest) and math.min(#v, n_prefix) or #v
    compiler:spend(n)
    for i = 1, n do
      local check = prefix[i] or rest
      if report then
        if report.full then
          return false
        end
        report:enter(i)
        ok = check(v[i], report) and ok
        report:leave()
      elseif not check(v[i]) then
        return false
      end
    end
    return ok
  end
end

local function contains(compiler, schema)
  if schema.contains == nil then
    return nil
  end
  local check = compiler:check(schema.contains)
  local min, max = schema.minContains or 1, schema.maxContains or huge
  return function(v, report)
    local n = 0
    compiler:spend(#v)
    for i = 1, #v do
      if check(v[i]) then
        n = n + 1
      end
    end
    if n >= min and n <= max then
      return true
    end
    if report then
      local bound = n < min and 'at least ' .. min or 'at most ' .. max
      report:add(('must contain %s item(s) of the kind that `contains` describes, has %d'):format(bound, n))
    end
    return false
  end
end

local function unique(compiler, schema)
  if not schema.uniqueItems then
    return nil
  end
  return function(v, report)
    local plain, tables = {}, {}
    compiler:spend(#v)
    for i = 1, #v do
      local item, seen = v[i], plain
      if type(item) == 'table' then
        local made
        made, item = pcall(canonical_json.text, item)
        if not made then
          compiler:give_up('is nested too deep to be compared')
        end
        compiler:spend(#item * STEPS_OF_BYTE)
        seen = tables
      end
      if seen[item] then
        if report then
          report:add(('items must differ: [%d] repeats [%d]'):format(i - 1, seen[item] - 1))
        end
        return false
      elseif item == item then -- NaN differs from everything and cannot be a key
        seen[item] = i
      end
    end
    return true
  end
end

local function item_count(schema)
  local min, max = schema.minItems or 0, schema.maxItems or huge
  if not schema.minItems and not schema.maxItems then
    return nil
  end
  return function(v, report)
    if #v >= min and #v <= max then
      return true
    end
    if report then
      report:add(#v < min and 'must have at least ' .. count(min, 'item') or 'must have at most ' .. count(max, 'item'))
    end
    return false
  end
end

-- Objects ----------------------------------------------------------------------------------------------------------

--- Maximum number of known names that a message about an unknown property lists.
local MAX_NAMES = 12
--- Maximum number of unknown properties that are compared with known names, and of those names.
local MAX_SUGGESTIONS, MAX_COMPARED = 10, 100
--- Properties of a larger object are not sorted before faults are reported.
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

--- Iterates over properties; sorted if there is a report, so that the order of faults is stable.
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

--- Returns the message for an unknown property.
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

--- Compiles `patternProperties` and `additionalProperties`.
local function by_name(compiler, schema)
  local groups = {}
  for _, source in ipairs(value.names(schema.patternProperties or {})) do
    local check = compiler:check(schema.patternProperties[source])
    -- A pattern that cannot be translated may match, so the name is accepted.
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
    local ok, surplus_count = true, 0
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
          surplus_count = surplus_count + 1
          report:add(surplus(tostring(name), known_names, surplus_count <= MAX_SUGGESTIONS), name)
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
        local inner = Report.new()
        check(name, inner)
        local why = inner.errors[1]
        report:add('is not allowed as a name' .. (why and ': ' .. why.message or ''), name)
        ok = false
      end
    end
    return ok
  end
end

local function property_count(schema)
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
      report:add(
        n < min and 'must have at least ' .. count(min, 'property', 'properties')
          or 'must have at most ' .. count(max, 'property', 'properties')
      )
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

local function is_any()
  return true
end

--- Compiles all groups, in the order in which faults are reported.
---@param compiler mcp-tools.schema.Compiler
---@param schema table
---@param rest mcp-tools.schema.Check[] the checks are appended to it
local function add_all(compiler, schema, rest)
  local function add(applies, ...)
    local checks = {}
    for i = 1, select('#', ...) do
      checks[#checks + 1] = (select(i, ...))
    end
    if #checks > 0 then
      rest[#rest + 1] = applies == is_any and #checks == 1 and checks[1] or every(checks, applies)
    end
  end
  add(is_any, limits(schema, NUMBERS, 'number'), limits(schema, STRINGS, 'string'), pattern(compiler, schema))
  add(value.is_array, item_count(schema), unique(compiler, schema), contains(compiler, schema), items(compiler, schema))
  add(
    value.is_object,
    required(schema),
    properties(compiler, schema),
    by_name(compiler, schema),
    property_names(compiler, schema),
    property_count(schema),
    dependent(compiler, schema)
  )
end

return { every = every, add_all = add_all }
