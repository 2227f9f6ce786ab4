--- The compiler: turns a schema into one Lua function per subschema.
---
--- Receives: a schema without faults and the targets of its references.
--- Sends: `check(value, report?) → boolean`. Without a report it stops at the first fault and allocates nothing; with
--- one it goes on and notes every fault. A schema is checked in the order "one of the named values" → "type" → the
--- rest, and later ones are not asked when an earlier one said no: their answers would only repeat it.
--- Does not know about: where schemas come from, defaults, tools.
---
--- Schemas that lead back to themselves, and patterns, can ask for more work than there is time for. So a run counts
--- its steps, and `give_up` ends it: it raises, and `run` catches that, nothing else does.

local every = require('mcp-tools.schema.every')
local keywords = require('mcp-tools.schema.keywords')
local pattern = require('mcp-tools.schema.pattern')
local value = require('mcp-tools.schema.value')

local M = {}

---@alias mcp-tools.schema.Check fun(value: any, report?: mcp-tools.schema.Report): boolean

---@class mcp-tools.schema.Compiler
---@field refs mcp-tools.schema.Refs
---@field done table<table, mcp-tools.schema.Check>
---@field depth integer how many references deep the run is
---@field steps integer that the run has taken: parts of the value times the schemas they were held against
---@field tries integer steps of the patterns
---@field tried table<string, boolean> pattern and text → does it match?
---@field most integer steps that a run may take
---@field report mcp-tools.schema.Report? of the run
local Compiler = {}
Compiler.__index = Compiler

--- What `give_up` raises.
---@class mcp-tools.schema.GaveUp: mcp-tools.Fault
local GaveUp = {}

--- A value nested deeper than this through references is a circle of Lua tables, not data.
local MAX_DEPTH = 200
--- About 0.1 s. A list of a million numbers takes one step each.
local MAX_STEPS = 2000000
--- About 15 ms.
local MAX_TRIES = 4500000
--- Results of a match that takes as many are remembered until the value has been told what is wrong with it.
local MANY_TRIES = 100000

--- The keyword groups, each in its file; each is fun(compiler, schema): Check|nil.
local GROUPS = {
  require('mcp-tools.schema.scalars'),
  require('mcp-tools.schema.arrays'),
  require('mcp-tools.schema.objects'),
  require('mcp-tools.schema.logic'),
}

local function always()
  return true
end

local function never(_, report)
  if report then
    report:add('is not allowed')
  end
  return false
end

--- One of the named values.
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
  local test = is_of_type[types[1]]
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
    if report then
      report:add(('must be %s, got %s'):format(table.concat(types, ' or '), value.describe(v)))
    end
    return false
  end
end

--- Checks that each decide alone; the next is not asked after a no.
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
  local n_first, others = #first, every(rest)
  return function(v, report)
    for i = 1, n_first do
      if not first[i](v, report) then
        return false
      end
    end
    return others(v, report)
  end
end

--- Ends the run: whether the value fits cannot be told in reasonable time.
---@param message string
function Compiler:give_up(message)
  local field = self.report and self.report:path() or '(root)'
  error(setmetatable({ field = field, message = message }, GaveUp), 0)
end

--- Counts work before it is done.
---@param steps integer
function Compiler:spend(steps)
  self.steps = self.steps + steps
  if self.steps > self.most then
    self:give_up('is too large to be checked; give less at a time')
  end
end

--- Runs what may give up.
---@param report mcp-tools.schema.Report?
---@param fn function
---@param a any
---@param b any
---@param c any
---@return boolean finished, any result of `fn`, or the fault that says why there is none
function Compiler:run(report, fn, a, b, c)
  self.depth, self.steps, self.tries, self.report = 0, 0, 0, report
  local finished, result = pcall(fn, a, b, c)
  if finished then
    return true, result
  elseif getmetatable(result) ~= GaveUp then
    error(result, 0)
  end
  return false, { field = result.field, message = result.message }
end

--- Whether a text matches a pattern; nil when that pattern cannot be tried.
---@param source string
---@return (fun(text: string): boolean)?
function Compiler:matcher(source)
  local compiled = pattern.compile(source)
  if not compiled then
    return nil
  end
  return function(text)
    local tries, tried = compiled.steps(#text), self.tried
    self.tries = self.tries + tries
    if self.tries > MAX_TRIES then
      self:give_up('has more text than can be tried against the pattern ' .. source)
    elseif tries < MANY_TRIES then
      return compiled.matches(text)
    end
    local key = source .. '\0' .. text
    if tried[key] == nil then
      tried[key] = compiled.matches(text)
    end
    return tried[key]
  end
end

--- A reference: compiled when it is first followed, because it may lead back up.
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

--- The check of a schema.
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
  local target = self.refs.target[schema]
  if target ~= nil then
    rest[1] = self:reference(target)
  end
  for _, group in ipairs(GROUPS) do
    rest[#rest + 1] = group(self, schema)
  end
  local first = gates(schema)
  local check = #first + #rest == 0 and always or joined(first, rest)
  self.done[schema] = check
  return check
end

--- References after each other that are followed to find out what a branch of a union is.
local MAX_HOPS = 16

--- The schema a schema stands for: the target of a bare reference, else itself.
---@param schema table|boolean
---@return table|boolean
function Compiler:resolved(schema)
  local hops = 0
  while type(schema) == 'table' and self.refs.target[schema] ~= nil and not schema.properties and hops < MAX_HOPS do
    schema = self.refs.target[schema]
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

---@param refs mcp-tools.schema.Refs
---@return mcp-tools.schema.Compiler
function M.new(refs)
  return setmetatable(
    { refs = refs, done = {}, depth = 0, steps = 0, tries = 0, tried = {}, most = MAX_STEPS },
    Compiler
  )
end

return M
