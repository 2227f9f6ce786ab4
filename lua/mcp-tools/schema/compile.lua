--- The compiler: turns a schema into one Lua function per subschema.
---
--- `check(value, report?)` returns whether the value is valid. Without a report it stops at the first fault and
--- allocates nothing; with one it records every fault. The order is `const` and `enum`, `type`, the rest. After a
--- failure, later ones are skipped, because they would only repeat it.
---
--- Recursive schemas and patterns can require too much work. So a run counts its steps, and `give_up` ends it by an
--- error, which only `run` catches.

local canonical_json = require('mcp-tools.util.canonical_json')
local keywords = require('mcp-tools.schema.keywords')
local regex = require('mcp-tools.util.regex')
local reports = require('mcp-tools.schema.report')
local suggest = require('mcp-tools.util.suggest')
local value = require('mcp-tools.schema.value')

local fail, GaveUp = reports.fail, reports.GaveUp
local floor, abs, huge = math.floor, math.abs, math.huge

local M = {}

---@alias mcp-tools.schema.Check fun(value: any, report?: mcp-tools.schema.Report): boolean

--- Combines checks. Runs all of them if there is a report, otherwise stops at the first failure.
---@param checks mcp-tools.schema.Check[]
---@param applies? fun(v: any): boolean other values are valid
---@param decisive? integer after a failure of one of the first checks, later ones are skipped
---@return mcp-tools.schema.Check
local function every(checks, applies, decisive)
  local n = #checks
  return function(v, report)
    if applies and not applies(v) then
      return true
    end
    local ok = true
    for i = 1, n do
      if not checks[i](v, report) then
        if not report or decisive and i <= decisive then
          return false
        end
        ok = false
      end
    end
    return ok
  end
end

--- Checks a part of a value.
---@param check mcp-tools.schema.Check
---@param key string|integer
---@param item any
---@param report mcp-tools.schema.Report?
---@return boolean ok
local function check_part(check, key, item, report)
  if not report then
    return check(item)
  end
  report:enter(key)
  local ok = check(item, report)
  report:leave()
  return ok
end

--- Returns a check of a number of parts; nil without limits.
---@param min integer?
---@param max integer?
---@param count_of fun(v: any): integer
---@param what string
---@param plural? string
---@return mcp-tools.schema.Check?
local function amount(min, max, count_of, what, plural)
  if not min and not max then
    return nil
  end
  local function words(limit)
    return ('%d %s'):format(limit, limit == 1 and what or plural or what .. 's')
  end
  return function(v, report)
    local n = count_of(v)
    if min and n < min then
      return fail(report, nil, 'must have at least %s', report and words(min))
    elseif max and n > max then
      return fail(report, nil, 'must have at most %s', report and words(max))
    end
    return true
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

--- Keyword, whether the limit is a minimum, whether it is excluded, and message, in the order of reported faults.
local BOUNDS = {
  { 'minimum', true, false, 'must be at least %s' },
  { 'maximum', false, false, 'must be at most %s' },
  { 'exclusiveMinimum', true, true, 'must be more than %s' },
  { 'exclusiveMaximum', false, true, 'must be less than %s' },
}

---@return mcp-tools.schema.Check?
local function numbers(schema)
  local used, divisor = {}, schema.multipleOf
  for _, bound in ipairs(BOUNDS) do
    used[#used + 1] = schema[bound[1]] ~= nil and bound or nil
  end
  return (#used > 0 or divisor)
      and function(v, report)
        if type(v) ~= 'number' then
          return true
        end
        local ok = true
        for i = 1, #used do
          local bound = used[i]
          local limit, low, high = schema[bound[1]], v, schema[bound[1]]
          if bound[2] then
            low, high = high, low
          end
          if not (low < high or low == high and not bound[3]) then
            ok = fail(report, nil, bound[4], report and value.show(limit))
          end
        end
        if divisor and not is_multiple(v, divisor) then
          ok = fail(report, nil, 'must be a multiple of %s', report and value.show(divisor))
        end
        return ok
      end
    or nil
end

--- A pattern that cannot be translated accepts every string; the validator lists it in `unchecked`.
---@return mcp-tools.schema.Check?
local function strings(compiler, schema)
  local min, max = schema.minLength or 0, schema.maxLength or huge
  local length = amount(schema.minLength, schema.maxLength, function(v)
    local n = #v -- a character has at most 4 bytes, so most strings need not be counted
    return n <= 4 * max and (n < 4 * min or n > max) and value.length(v) or n
  end, 'character')
  local matches = schema.pattern and compiler:matcher(schema.pattern)
  return (length or matches)
      and function(v, report)
        if type(v) ~= 'string' then
          return true
        end
        local ok = not length or length(v, report)
        if matches and (ok or report) and not matches(v) then
          ok = fail(report, nil, 'must match the pattern %s', schema.pattern)
        end
        return ok
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
  if #prefix == 0 and not rest then
    return nil
  end
  return function(v, report)
    local ok, n = true, rest and #v or math.min(#v, #prefix)
    compiler:spend(n)
    for i = 1, n do
      if not check_part(prefix[i] or rest, i, v[i], report) then
        if not report then
          return false
        end
        ok = false
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
      n = n + (check(v[i]) and 1 or 0)
    end
    if n >= min and n <= max then
      return true
    end
    local text = 'must contain %s %d item(s) of the kind that `contains` describes, has %d'
    return fail(report, nil, text, n < min and 'at least' or 'at most', n < min and min or max, n)
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
        return fail(report, nil, 'items must differ: [%d] repeats [%d]', i - 1, seen[item] - 1)
      elseif item == item then -- NaN differs from everything and cannot be a key
        seen[item] = i
      end
    end
    return true
  end
end

-- Objects ----------------------------------------------------------------------------------------------------------

--- Maximum number of known names that a message about an unknown property lists.
local MAX_NAMES = 12
--- Maximum number of unknown properties that are compared with known names, and of those names.
local MAX_SUGGESTIONS, MAX_COMPARED = 10, 100
--- Properties of a larger object are not sorted before faults are reported.
local MAX_SORTED = 1000

--- Returns the number of properties; stops counting above `max`.
---@return integer
local function size_of(object, max)
  local n = 0
  for _ in pairs(object) do
    n = n + 1
    if max and n > max then
      break
    end
  end
  return n
end

--- Iterates over properties; sorted if there is a report, so that the order of faults is stable.
local function each(object, report)
  if not report or size_of(object, MAX_SORTED) > MAX_SORTED then
    return pairs(object)
  end
  local names, i = value.names(object), 0
  return function()
    i = i + 1
    return names[i], object[names[i]]
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
      ok = (v[names[i]] ~= nil or fail(report, names[i], 'is required')) and ok
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
      if item ~= nil and not check_part(checks[i], names[i], item, report) then
        if not report then
          return false
        end
        ok = false
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
  local near = compare and #known <= MAX_COMPARED and suggest(name, known)
  if near then
    return ('is not allowed, did you mean %s?'):format(near)
  elseif #known == 0 or #known > MAX_NAMES then
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
  local known_names = vim.tbl_filter(function(name)
    return type(known[name]) ~= 'table' or not known[name].hidden
  end, value.names(known))
  return function(v, report)
    local ok, surplus_count = true, 0
    for name, item in each(v, report) do
      compiler:spend(1 + #groups)
      local claimed, fits = known[name] ~= nil, true
      for i = 1, #groups do
        local group = groups[i]
        if not group.matches then
          claimed = true
        elseif type(name) == 'string' and group.matches(name) then
          claimed = true
          fits = check_part(group.check, name, item, report) and fits
        end
      end
      if not claimed and others == false then
        surplus_count = surplus_count + 1
        fits =
          fail(report, name, '%s', report and surplus(tostring(name), known_names, surplus_count <= MAX_SUGGESTIONS))
      elseif not claimed and other then
        fits = check_part(other, name, item, report) and fits
      end
      if not (fits or report) then
        return false
      end
      ok = fits and ok
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
        if not report then
          return false
        end
        local why = report:first_of(check, name)
        ok = fail(report, name, 'is not allowed as a name%s', why and ': ' .. why or '')
      end
    end
    return ok
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
        ok = (v[names[i]] ~= nil or fail(report, names[i], 'is required when %s is given', name)) and ok
      end
    end
    for name, check in each(schemas, report) do
      ok = (v[name] == nil or check(v, report)) and ok
    end
    return ok
  end
end

-- Combined schemas -------------------------------------------------------------------------------------------------

local function all_of(compiler, schema)
  local checks = {}
  for i, part in ipairs(schema.allOf) do
    checks[i] = compiler:check(part)
  end
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
  local checks, branches = {}, {}
  for i, schema in ipairs(list) do
    checks[i], branches[i] = compiler:check(schema), compiler:resolved(schema)
  end
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
      report:add_union(branches, checks, v)
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

--- Compiles the keywords that combine schemas.
---@param compiler mcp-tools.schema.Compiler
---@param schema table
---@param rest mcp-tools.schema.Check[] the checks are appended to it
local function add_combined(compiler, schema, rest)
  rest[#rest + 1] = schema.allOf and all_of(compiler, schema) or nil
  rest[#rest + 1] = schema.anyOf and union(compiler, schema.anyOf, false) or nil
  rest[#rest + 1] = schema.oneOf and union(compiler, schema.oneOf, true) or nil
  rest[#rest + 1] = schema['not'] ~= nil and none_of(compiler, schema) or nil
  rest[#rest + 1] = schema['if'] ~= nil and condition(compiler, schema) or nil
end

---@param v table
---@return integer
local function count_items(v)
  return #v
end

--- Compiles all groups, in the order in which faults are reported.
---@param compiler mcp-tools.schema.Compiler
---@param schema table
---@param rest mcp-tools.schema.Check[] the checks are appended to it
local function add_all(compiler, schema, rest)
  local of_arrays, of_objects = {}, {}
  rest[#rest + 1] = numbers(schema)
  rest[#rest + 1] = strings(compiler, schema)
  of_arrays[#of_arrays + 1] = amount(schema.minItems, schema.maxItems, count_items, 'item')
  of_arrays[#of_arrays + 1] = unique(compiler, schema)
  of_arrays[#of_arrays + 1] = contains(compiler, schema)
  of_arrays[#of_arrays + 1] = items(compiler, schema)
  of_objects[#of_objects + 1] = required(schema)
  of_objects[#of_objects + 1] = properties(compiler, schema)
  of_objects[#of_objects + 1] = by_name(compiler, schema)
  of_objects[#of_objects + 1] = property_names(compiler, schema)
  of_objects[#of_objects + 1] = amount(schema.minProperties, schema.maxProperties, size_of, 'property', 'properties')
  of_objects[#of_objects + 1] = dependent(compiler, schema)
  rest[#rest + 1] = #of_arrays > 0 and every(of_arrays, value.is_array) or nil
  rest[#rest + 1] = #of_objects > 0 and every(of_objects, value.is_object) or nil
end

-- The compiler ------------------------------------------------------------------------------------------------------

---@class mcp-tools.schema.Compiler
---@field target table<table, table|boolean> schema with a `$ref` → the schema it refers to
---@field done table<table, mcp-tools.schema.Check>
---@field depth integer number of references that the run is in
---@field steps integer steps so far: parts of the value times the schemas they were checked against
---@field tries integer steps of patterns so far
---@field most integer maximum number of steps of a run
---@field report mcp-tools.schema.Report? of the run
local Compiler = {}
Compiler.__index = Compiler

--- Maximum depth of references. A deeper value is a cycle of Lua tables.
local MAX_DEPTH = 200
--- Maximum number of steps, about 0.1 s. A list of a million numbers takes one step each.
local MAX_STEPS = 2000000
--- Maximum number of steps of patterns, at most 0.1 s.
local MAX_TRIES = 4500000
--- Maximum number of references that are followed to resolve a branch of a union.
local MAX_HOPS = 16

local function always()
  return true
end

local function never(_, report)
  return fail(report, nil, 'is not allowed')
end

--- Compiles `const` or `enum`.
local function any_of(allowed)
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

local function typed(types)
  local test, names = value.is_of_type[types[1]], table.concat(types, ' or ')
  if #types > 1 then
    test = function(v)
      return value.is_one_of(types, v)
    end
  end
  return function(v, report)
    if test(v) then
      return true
    end
    return fail(report, nil, 'must be %s, got %s', names, report and value.describe(v))
  end
end

--- Ends the run: whether the value is valid cannot be decided in reasonable time.
---@param message string
function Compiler:give_up(message)
  reports.give_up(self.report and self.report:path() or '(root)', message)
end

--- Counts steps before they are done.
---@param steps integer
function Compiler:spend(steps)
  self.steps = self.steps + steps
  if self.steps > self.most then
    self:give_up('is too large to be checked; send less data')
  end
end

--- Calls a function that may give up.
---@param report mcp-tools.schema.Report?
---@param fn function
---@param ... any its arguments
---@return boolean finished, any result of `fn`, or the fault if it gave up
function Compiler:run(report, fn, ...)
  self.depth, self.steps, self.tries, self.report = 0, 0, 0, report
  local finished, result = pcall(fn, ...)
  if finished then
    return true, result
  elseif getmetatable(result) ~= GaveUp then
    error(result, 0)
  end
  local gave_up = result --[[@as mcp-tools.schema.GaveUp]]
  return false, { field = gave_up.field, message = gave_up.message }
end

--- Compiles a pattern to a function that matches strings; nil if the pattern cannot be translated.
---@param source string
---@return (fun(text: string): boolean)?
function Compiler:matcher(source)
  local translated = regex.translate(source, regex.move)
  if not translated then
    return nil
  end
  local compiled, steps = vim.regex(translated.vim .. '\\C'), translated.steps
  return function(text)
    self.tries = self.tries + steps * #text
    if self.tries > MAX_TRIES then
      self:give_up('has too much text to be matched against the pattern ' .. source)
    end
    return compiled:match_str(regex.move(text)) ~= nil
  end
end

--- A reference is compiled when it is first followed, because it may be recursive.
function Compiler:reference(target)
  local check
  return function(v, report)
    check = check or self:check(target)
    if self.depth >= MAX_DEPTH then
      self:give_up(('is nested deeper than %d levels'):format(MAX_DEPTH))
    end
    self:spend(1)
    self.depth = self.depth + 1
    local ok = check(v, report)
    self.depth = self.depth - 1
    return ok
  end
end

--- Returns the compiled check of a schema.
---@param schema table|boolean
---@return mcp-tools.schema.Check
function Compiler:check(schema)
  if type(schema) == 'boolean' then
    return schema and always or never
  end
  if self.done[schema] then
    return self.done[schema]
  end
  local checks = {}
  checks[#checks + 1] = schema.const ~= nil and any_of({ schema.const }) or nil
  checks[#checks + 1] = schema.enum and any_of(schema.enum) or nil
  checks[#checks + 1] = schema.type and typed(keywords.types_of(schema)) or nil
  local decisive, target = #checks, self.target[schema]
  checks[#checks + 1] = target ~= nil and self:reference(target) or nil
  add_all(self, schema, checks)
  add_combined(self, schema, checks)
  local check = #checks == 0 and always or #checks == 1 and checks[1] or every(checks, nil, decisive)
  self.done[schema] = check
  return check
end

--- Returns the target of a schema that is only a reference, otherwise the schema itself.
---@param schema table|boolean
---@return table|boolean
function Compiler:resolved(schema)
  local hops = 0
  while type(schema) == 'table' and self.target[schema] ~= nil and not schema.properties and hops < MAX_HOPS do
    schema = self.target[schema]
    hops = hops + 1
  end
  return schema
end

--- Prepares a pass over a value. Each public function of a validator begins with it.
---@param opts? { strict?: boolean, steps?: integer } as for `Validator:check`
function Compiler:begin(opts)
  self.most = opts and opts.steps or MAX_STEPS
  value.strict = opts ~= nil and opts.strict == true
end

---@param target table<table, table|boolean> schema with a `$ref` → the schema it refers to
---@return mcp-tools.schema.Compiler
function M.new(target)
  return setmetatable({ target = target, done = {}, depth = 0, steps = 0, tries = 0, most = MAX_STEPS }, Compiler)
end

return M
