--- The compiler: turns a schema into one Lua function per subschema.
---
--- `check(value, report?)` returns whether the value is valid. Without a report it stops at the first fault and
--- allocates nothing; with one it records every fault. The order is `const` and `enum`, `type`, the rest. After a
--- failure, later ones are skipped, because they would only repeat it.
---
--- Recursive schemas and patterns can require too much work. So a run counts its steps, and `give_up` ends it by an
--- error, which only `run` catches.

local checks = require('mcp-tools.schema.checks')
local combine = require('mcp-tools.schema.logic')
local keywords = require('mcp-tools.schema.keywords')
local regex = require('mcp-tools.util.regex')
local utf8 = require('mcp-tools.util.utf8')
local value = require('mcp-tools.schema.value')

local fail = checks.fail

local M = {}

---@alias mcp-tools.schema.Check fun(value: any, report?: mcp-tools.schema.Report): boolean

-- Faults of a value -------------------------------------------------------------------------------------------------

--- Maximum number of listed faults. Further faults are only counted, and after as many again the check stops.
local MAX_ERRORS = 100
--- Maximum bytes of a name in a path, of a path, and of a message.
local MAX_NAME, MAX_PATH, MAX_MESSAGE = 80, 250, 4096

---@class mcp-tools.schema.Report
---@field keys (string|integer)[] path of the current value
---@field depth integer
---@field errors mcp-tools.Fault[]
---@field seen table<string, true>
---@field left_out integer
---@field full boolean the check can stop
local Report = {}
Report.__index = Report

---@return mcp-tools.schema.Report
function M.report()
  return setmetatable({ keys = {}, depth = 0, errors = {}, seen = {}, left_out = 0, full = false }, Report)
end

--- Returns the message of the first fault of another value.
---@param check mcp-tools.schema.Check
---@param v any
---@return string?
function Report:first_of(check, v)
  local inner = M.report()
  check(v, inner)
  return inner.errors[1] and inner.errors[1].message
end

--- Enters a property or item.
---@param key string|integer Lua index for items
function Report:enter(key)
  self.depth = self.depth + 1
  self.keys[self.depth] = key
end

function Report:leave()
  self.keys[self.depth] = nil
  self.depth = self.depth - 1
end

--- Appends a key to a path. Long names are cut.
local function step(path, key)
  return keywords.join(path, type(key) == 'number' and key or utf8.cut(tostring(key), MAX_NAME))
end

--- Returns the path of the current value, or of one of its properties.
---@param key? string
---@return string
function Report:path(key)
  local path = ''
  for i = 1, self.depth do
    path = step(path, self.keys[i])
  end
  path = key and step(path, key) or path
  if #path > MAX_PATH then
    -- The middle is the least useful part.
    path = utf8.cut(path, MAX_PATH / 2) .. path:sub(-MAX_PATH / 2):gsub('^[\128-\191]+', '')
  end
  return path == '' and '(root)' or path
end

--- Adds a fault of the current value, or of one of its properties.
---@param message string
---@param key? string
function Report:add(message, key)
  if not self.full then
    self:put(self:path(key), message)
  end
end

--- Adds a fault with its full path.
---@param field string
---@param message string
function Report:put(field, message)
  local id = field .. '\0' .. message
  if self.seen[id] then
    return
  end
  self.seen[id] = true
  if #self.errors < MAX_ERRORS then
    self.errors[#self.errors + 1] = { field = field, message = utf8.cut(message, MAX_MESSAGE) }
  else
    self.left_out = self.left_out + 1
    self.full = self.left_out >= MAX_ERRORS
  end
end

--- Returns all faults in the order in which they were found.
---@return mcp-tools.Fault[]
function Report:list()
  local list = vim.list_slice(self.errors)
  if self.left_out > 0 then
    local count = (self.full and 'at least %d more faults' or '%d more faults'):format(self.left_out)
    list[#list + 1] = { field = '(root)', message = count }
  end
  return list
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

--- The error that `give_up` throws.
---@class mcp-tools.schema.GaveUp: mcp-tools.Fault
local GaveUp = {}

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

--- Compiles `const` and `enum`.
local function named(allowed)
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
    if report and not report.full then
      local words = #allowed == 1 and 'must be ' or 'must be one of '
      report:add(#allowed == 0 and 'has no allowed value' or words .. value.show_list(allowed))
    end
    return false
  end
end

---@type table<string, fun(v: any): boolean>
local is_of_type = {
  string = function(v)
    return type(v) == 'string'
  end,
  number = function(v)
    return type(v) == 'number'
  end,
  boolean = function(v)
    return type(v) == 'boolean'
  end,
  null = function(v)
    return v == vim.NIL
  end,
  integer = value.is_integer,
  array = value.is_array,
  object = value.is_object,
}

local function typed(types)
  local test, names = is_of_type[types[1]], table.concat(types, ' or ')
  if #types > 1 then
    local tests = {}
    for i, name in ipairs(types) do
      tests[i] = is_of_type[name]
    end
    test = function(v)
      for i = 1, #tests do
        if tests[i](v) then
          return true
        end
      end
      return false
    end
  end
  return function(v, report)
    if test(v) then
      return true
    end
    return fail(report, nil, 'must be %s, got %s', names, report and value.describe(v))
  end
end

--- Compiles the checks after whose failure the others are skipped.
local function gates(schema)
  local out = {}
  if schema.const ~= nil then
    out[#out + 1] = named({ schema.const })
  end
  if schema.enum then
    out[#out + 1] = named(schema.enum)
  end
  if schema.type then
    out[#out + 1] = typed(keywords.types_of(schema))
  end
  return out
end

---@param first mcp-tools.schema.Check[]
---@param rest mcp-tools.schema.Check[]
---@return mcp-tools.schema.Check
local function joined(first, rest)
  if #first + #rest == 1 then
    return first[1] or rest[1]
  end
  local n_first, others = #first, checks.every(rest)
  return function(v, report)
    for i = 1, n_first do
      if not first[i](v, report) then
        return false
      end
    end
    return others(v, report)
  end
end

--- Ends the run: whether the value is valid cannot be decided in reasonable time.
---@param message string
function Compiler:give_up(message)
  local field = self.report and self.report:path() or '(root)'
  error(setmetatable({ field = field, message = message }, GaveUp), 0)
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
  local rest = {}
  local target = self.target[schema]
  if target ~= nil then
    rest[1] = self:reference(target)
  end
  checks.add_all(self, schema, rest)
  combine(self, schema, rest)
  local first = gates(schema)
  local check = #first + #rest == 0 and always or joined(first, rest)
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
