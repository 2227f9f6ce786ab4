--- JSON Schema, draft 2020-12: a validator, compiled once, asked for every call.
---
--- Receives: a schema as a Lua table; then values (null is `vim.NIL`, an empty object has `vim.empty_dict()`'s
--- metatable, a plain empty table can be either).
--- Sends: a validator, or the faults of the schema itself; for a value: right or wrong, with every fault.
--- Does not know about: tools, clients, calls.
---
--- Not supported, and refused: `$dynamicRef`, `unevaluated*`, references to other documents. Annotations: `format`,
--- `content*` and every unknown keyword. Patterns that do not translate exactly let every text pass and are named
--- in `validator.unchecked`. A value that cannot be checked in reasonable time is refused, with that fault.
---
--- Requires inside functions are start-up cost: a schema is taken in while the editor starts, and compiled when it is
--- first used.

local faults = require('mcp-tools.schema.faults')
local keywords = require('mcp-tools.schema.keywords')
local value = require('mcp-tools.schema.value')

local M = {}

---@class mcp-tools.Unchecked a keyword that is not checked, and why
---@field path string
---@field keyword string
---@field why string

---@class mcp-tools.schema.Machine what is made of a schema at its first use
---@field compiler mcp-tools.schema.Compiler
---@field shaper mcp-tools.schema.Plans
---@field filler mcp-tools.schema.Plans
---@field check mcp-tools.schema.Check? of the whole

---@class mcp-tools.Validator
---@field schema table|boolean
---@field unchecked mcp-tools.Unchecked[]
---@field private refs mcp-tools.schema.Refs
---@field private made mcp-tools.schema.Machine?
local Validator = {}
Validator.__index = Validator

---@return mcp-tools.schema.Machine
function Validator:machine()
  local made = self.made
  if not made then
    local compiler = require('mcp-tools.schema.compile').new(self.refs)
    local shaper = require('mcp-tools.schema.shape')(compiler)
    made = {
      compiler = compiler,
      shaper = shaper,
      filler = require('mcp-tools.schema.fill')(compiler, shaper),
    }
    self.made = made
  end
  return made
end

--- All that is wrong with a value that does not fit.
---@param compiler mcp-tools.schema.Compiler
---@param check mcp-tools.schema.Check
---@param v any
---@param gave_up mcp-tools.Fault? why the first look at it did not come to an end
---@return mcp-tools.Fault[]
local function faults_of(compiler, check, v, gave_up)
  local report = require('mcp-tools.schema.report').new()
  local finished, fault = compiler:run(report, check, v, report)
  if not finished then
    report:put(fault.field, fault.message)
  elseif gave_up then
    report:put(gave_up.field, gave_up.message)
  end
  return report:list()
end

--- Checks a value.
---@param v any
---@param opts? { strict?: boolean, steps?: integer } strict: a plain empty table is an array, as it is off the wire;
---  steps: that it may take, at about 50 ns
---@return boolean ok
---@return mcp-tools.Fault[]? errors all of them, when not ok
function Validator:check(v, opts)
  local made = self.made or self:machine()
  local check = made.check
  if not check then
    check = made.compiler:check(self.schema)
    made.check = check
  end
  local compiler = made.compiler
  compiler:begin(opts)
  local finished, result = compiler:run(nil, check, v)
  local found = not (finished and result) and faults_of(compiler, check, v, not finished and result or nil) or nil
  if next(compiler.tried) then
    compiler.tried = {}
  end
  return not found, found
end

--- Fills in defaults and drops nulls that mean "not given", in place, at every level.
---@param v any a table the caller owns; anything else is returned as it is
---@param opts? { strict?: boolean, steps?: integer } as for `check`
---@return any value the same table
---@return mcp-tools.Fault? fault why it was filled in part only: it is too large
function Validator:fill(v, opts)
  if type(v) ~= 'table' then
    return v
  end
  local made = self.made or self:machine()
  made.compiler:begin(opts)
  local finished, fault = made.compiler:run(nil, made.filler.run, made.filler, self.schema, v)
  if finished then
    return v
  end
  return v, fault
end

--- Gives empty tables of a value from Lua the form that the schema says.
---@param v any never changed
---@param part? table a schema within this one that the value is about (default: this one)
---@return any value the same when there is nothing to do, else a copy in which they are `vim.empty_dict()` where the
---  schema means an object
function Validator:shape(v, part)
  if not value.is_ambiguous(v) then
    return v
  end
  local made, copy = self.made or self:machine(), value.copy(v)
  made.compiler:begin()
  made.compiler:run(nil, made.shaper.run, made.shaper, part or self.schema, copy)
  return copy
end

--- Calls `fn` for each schema within a schema, itself included.
local function each_schema(schema, path, fn)
  if type(schema) == 'table' then
    fn(schema, path)
    keywords.children(schema, path, function(child, at)
      each_schema(child, at, fn)
    end)
  end
end

--- Keywords beside which it is plain to see whether a default fits.
local PLAIN = {}
for _, keyword in ipairs({ 'type', 'default', 'title', 'description', 'examples', 'minimum', 'maximum', 'enum' }) do
  PLAIN[keyword] = true
end

--- Whether a default fits for all that can be seen without compiling.
local function plainly_fits(schema)
  local default, kind = schema.default, schema.type
  for keyword in pairs(schema) do
    if not PLAIN[keyword] then
      return false
    end
  end
  if type(default) == 'number' and (default < (schema.minimum or default) or default > (schema.maximum or default)) then
    return false
  elseif type(default) == 'table' or schema.enum and not vim.list_contains(schema.enum, default) then
    return false
  end
  return kind == value.kind(default) or kind == 'integer' and value.is_integer(default)
end

--- Why a default does not fit its own schema.
---@return string?
function Validator:misfit(schema)
  if schema.default == nil or schema.default == vim.NIL or plainly_fits(schema) then
    return nil
  end
  local made = self:machine()
  local compiler = made.compiler
  local check = compiler:check(schema)
  local function fits()
    return check(made.shaper:run(schema, value.copy(schema.default)))
  end
  compiler:begin()
  local finished, result = compiler:run(nil, fits)
  if not (finished and result) then
    return faults_of(compiler, check, schema.default, not finished and result or nil)[1].message
  end
end

--- Defaults that their own schema refuses. They are never filled in.
---@return mcp-tools.Fault[]
function Validator:misfits()
  local out = {}
  each_schema(self.schema, '', function(schema, path)
    local why = self:misfit(schema)
    if why then
      local message = ('does not fit its own schema (%s); it is not filled in'):format(why)
      out[#out + 1] = { field = keywords.join(path, 'default'), message = message }
    end
  end)
  return out
end

--- Patterns that cannot be tried.
---@return mcp-tools.Unchecked[]
local function unchecked_of(schema)
  local out = {}
  local function try(source, path, keyword)
    local compiled, why = require('mcp-tools.schema.pattern').compile(source)
    if not compiled then
      out[#out + 1] = { path = path, keyword = keyword, why = why }
    end
  end
  each_schema(schema, '', function(part, path)
    if part.pattern then
      try(part.pattern, keywords.join(path, 'pattern'), 'pattern')
    end
    for source in pairs(part.patternProperties or {}) do
      try(source, keywords.join(keywords.join(path, 'patternProperties'), source), 'patternProperties')
    end
  end)
  table.sort(out, function(a, b)
    return a.path < b.path
  end)
  return out
end

---@return boolean
local function has_references(schema)
  local found = false
  each_schema(schema, '', function(part)
    found = found or part['$ref'] ~= nil
  end)
  return found
end

--- Makes a validator of a schema whose own form has been checked already.
---@param sound table|boolean never changed, and not to be changed after
---@return mcp-tools.Validator?
---@return mcp-tools.Fault[]? faults of its references
function M.compile_sound(sound)
  local refs = { target = {} } ---@type mcp-tools.schema.Refs?
  if has_references(sound) then
    local found
    refs, found = require('mcp-tools.schema.refs').resolve(sound)
    if not refs then
      return nil, found
    end
  end
  return setmetatable({ schema = sound, refs = refs, unchecked = unchecked_of(sound) }, Validator)
end

--- Makes a validator.
---@param json_schema table|boolean never changed, and not to be changed after
---@return mcp-tools.Validator?
---@return mcp-tools.Fault[]? faults of the schema, when it cannot be used
function M.compile(json_schema)
  local found = faults.find(json_schema)
  if #found > 0 then
    return nil, found
  end
  return M.compile_sound(json_schema)
end

--- Checks one value against one schema, for one-off use.
---@param json_schema table|boolean
---@param v any
---@param opts? { strict?: boolean }
---@return boolean? ok nil when the schema itself is at fault
---@return mcp-tools.Fault[]? errors of the value, or faults of the schema
function M.check(json_schema, v, opts)
  local validator, found = M.compile(json_schema)
  if not validator then
    return nil, found
  end
  return validator:check(v, opts)
end

return M
