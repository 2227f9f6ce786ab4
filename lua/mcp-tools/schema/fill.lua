--- Defaults: puts them in where nothing is given, and takes out nulls that stand for "not given".
---
--- Receives: compiled checks of a schema.
--- Sends: plans that fill a value in place, at every level of `properties` that it has.
--- Does not know about: whether the value is right (that is checked after), tools.

local new_plans = require('mcp-tools.schema.plans')
local value = require('mcp-tools.schema.value')

local NIL = vim.NIL
--- A default that is filled in counts like this many steps of the check.
local STEPS = 10

---@class mcp-tools.schema.Filler: mcp-tools.schema.Visitor
---@field shaper mcp-tools.schema.Plans of the defaults
local Filler = {}
Filler.__index = Filler

--- The first default that its own schema accepts.
---@param plans mcp-tools.schema.Plans
---@param schemas (table|boolean)[]
---@return any
function Filler:default_of(plans, schemas)
  for _, schema in ipairs(schemas) do
    for _, facet in ipairs(plans:facets(schema, {}, {})) do
      local default = self:shaped(schema, facet.default)
      if default ~= nil and plans.compiler:check(schema)(default) then
        return default
      end
    end
  end
end

--- A copy of a default, its empty tables as they are meant.
function Filler:shaped(schema, default)
  local strict = value.strict
  value.strict = false
  default = self.shaper:run(schema, value.copy(default))
  value.strict = strict
  return default
end

--- Whether null can only mean "not given", as far as these schemas go.
local function refuses_null(plans, schemas)
  for _, schema in ipairs(schemas) do
    if not plans.compiler:check(schema)(NIL) then
      return true
    end
  end
  return false
end

function Filler:property(plans, name, schemas, required)
  local default, inside = self:default_of(plans, schemas), plans:inside(schemas)
  local drop_null = refuses_null(plans, schemas) and (not required or default ~= nil)
  local compiler = plans.compiler
  local busy -- the run in which the default is being filled: it does not come again within itself
  return function(v)
    local item = v[name]
    if item == NIL and drop_null then
      v[name], item = nil, nil
    end
    if item ~= nil then
      if type(item) == 'table' then
        inside(item)
      end
    elseif default ~= nil and busy ~= plans.turn then
      compiler:spend(STEPS)
      item = value.copy(default)
      v[name] = item
      if type(item) == 'table' then
        busy = plans.turn
        inside(item)
        busy = nil
      end
    end
  end
end

function Filler:empty(_, wanted)
  return wanted and not value.strict
end

---@param compiler mcp-tools.schema.Compiler
---@param shaper mcp-tools.schema.Plans
---@return mcp-tools.schema.Plans
return function(compiler, shaper)
  return new_plans(compiler, setmetatable({ shaper = shaper }, Filler))
end
