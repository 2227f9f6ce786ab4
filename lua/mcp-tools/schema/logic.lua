--- Keywords that combine schemas: `allOf`, `anyOf`, `oneOf`, `not`, `if`.
---
--- Receives: a schema. Sends: one check for all of these keywords that it has, or nil.
--- Does not know about: how a union's faults are worded (union.lua).

local every = require('mcp-tools.schema.every')
local new_union = require('mcp-tools.schema.union')

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

local function any_of(compiler, schema)
  local checks = checks_of(compiler, schema.anyOf)
  local union = new_union(compiler, schema.anyOf)
  return function(v, report)
    compiler:spend(#checks)
    for i = 1, #checks do
      if checks[i](v) then
        return true
      end
    end
    if report then
      union:explain(checks, v, report)
    end
    return false
  end
end

local function one_of(compiler, schema)
  local checks = checks_of(compiler, schema.oneOf)
  local union = new_union(compiler, schema.oneOf)
  return function(v, report)
    compiler:spend(#checks)
    local first
    for i = 1, #checks do
      if checks[i](v) then
        if first then
          if report then
            report:add(('must match exactly one of %d alternatives, matches %d and %d'):format(#checks, first, i))
          end
          return false
        end
        first = i
      end
    end
    if not first and report then
      union:explain(checks, v, report)
    end
    return first ~= nil
  end
end

local function none_of(compiler, schema)
  local check = compiler:check(schema['not'])
  return function(v, report)
    if not check(v) then
      return true
    end
    if report then
      report:add('is not allowed (`not`)')
    end
    return false
  end
end

local function condition(compiler, schema)
  local test = compiler:check(schema['if'])
  local yes = schema['then'] ~= nil and compiler:check(schema['then']) or nil
  local no = schema['else'] ~= nil and compiler:check(schema['else']) or nil
  if not yes and not no then
    return nil
  end
  return function(v, report)
    local branch
    if test(v) then
      branch = yes
    else
      branch = no
    end
    return not branch or branch(v, report)
  end
end

---@param compiler mcp-tools.schema.Compiler
---@param schema table
---@return mcp-tools.schema.Check?
return function(compiler, schema)
  local checks = {}
  checks[#checks + 1] = schema.allOf and all_of(compiler, schema)
  checks[#checks + 1] = schema.anyOf and any_of(compiler, schema)
  checks[#checks + 1] = schema.oneOf and one_of(compiler, schema)
  checks[#checks + 1] = schema['not'] ~= nil and none_of(compiler, schema) or nil
  checks[#checks + 1] = schema['if'] ~= nil and condition(compiler, schema) or nil
  if #checks < 2 then
    return checks[1]
  end
  return every(checks)
end
