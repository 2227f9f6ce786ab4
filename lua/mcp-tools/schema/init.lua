--- JSON Schema, draft 2020-12: compiled once, asked for every call.
---
--- Receives: a schema as a Lua table; then values (null is `vim.NIL`, an empty object has `vim.empty_dict()`'s
--- metatable, a plain empty table can be either).
--- Sends: a validator, or the faults of the schema itself; for a value: right or wrong, with every fault.
--- Does not know about: tools, clients, calls.
---
--- Not supported, and refused: `$dynamicRef`, `unevaluated*`, references to other documents. Annotations: `format`,
--- `content*` and every unknown keyword. Patterns that do not translate exactly let every text pass and are named
--- in `validator.unchecked`.

local compile = require('mcp-tools.schema.compile')
local faults = require('mcp-tools.schema.faults')
local fill = require('mcp-tools.schema.fill')
local keywords = require('mcp-tools.schema.keywords')
local pattern = require('mcp-tools.schema.pattern')
local refs = require('mcp-tools.schema.refs')
local Report = require('mcp-tools.schema.report')
local shape = require('mcp-tools.schema.shape')
local value = require('mcp-tools.schema.value')

local M = {}

---@class mcp-tools.Unchecked a keyword that is not checked, and why
---@field path string
---@field keyword string
---@field why string

---@class mcp-tools.Validator
---@field schema table|boolean
---@field unchecked mcp-tools.Unchecked[]
---@field private compiler mcp-tools.schema.Compiler
---@field private filler mcp-tools.schema.Filler
---@field private run mcp-tools.schema.Check? made at the first check
local Validator = {}
Validator.__index = Validator

--- Checks a value.
---@param v any
---@param opts? { strict?: boolean } strict: a plain empty table is an array, as it is off the wire
---@return boolean ok
---@return mcp-tools.Fault[]? errors all of them, when not ok
function Validator:check(v, opts)
  value.strict = opts ~= nil and opts.strict == true
  local run = self.run
  if not run then
    run = self.compiler:check(self.schema)
    self.run = run
  end
  self.compiler.depth = 0
  if run(v) then
    return true
  end
  self.compiler.depth = 0
  local report = Report.new()
  run(v, report)
  return false, report:list()
end

--- Fills in defaults and drops nulls that mean "not given", in place, at every level.
---@param v any a table the caller owns; anything else is returned as it is
---@return any value the same table
function Validator:fill(v)
  if type(v) == 'table' then
    value.strict = false
    self.compiler.depth, self.filler.depth = 0, 0
    self.filler:plan(self.schema)(v)
  end
  return v
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

--- Defaults that their own schema refuses. They are never filled in.
---@return mcp-tools.Fault[]
function Validator:misfits()
  local out = {}
  value.strict = false
  each_schema(self.schema, '', function(schema, path)
    local default = shape(schema.default, schema)
    if default ~= nil and default ~= vim.NIL and not self.compiler:check(schema)(default) then
      local report = Report.new()
      self.compiler:check(schema)(default, report)
      local message = 'does not fit its own schema (' .. report:list()[1].message .. '); it is not filled in'
      out[#out + 1] = { field = keywords.join(path, 'default'), message = message }
    end
  end)
  return out
end

--- Patterns that cannot be tried.
local function unchecked_of(schema)
  local out = {}
  local function try(source, path, keyword)
    local matches, why = pattern.compile(source)
    if not matches then
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

--- Compiles a schema whose own form has been checked already.
---@param sound table|boolean never changed, and not to be changed after
---@return mcp-tools.Validator?
---@return mcp-tools.Fault[]? faults of its references
function M.compile_sound(sound)
  local resolved, unresolved = refs.resolve(sound)
  if not resolved then
    return nil, unresolved
  end
  local compiler = compile.new(resolved)
  return setmetatable({
    schema = sound,
    unchecked = unchecked_of(sound),
    compiler = compiler,
    filler = fill.new(compiler),
  }, Validator)
end

--- Compiles a schema.
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
