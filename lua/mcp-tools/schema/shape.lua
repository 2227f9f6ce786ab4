--- The form of empty tables: `{}` in Lua is an object or an array, in JSON only one of them; the schema says which.
---
--- Receives: compiled checks of a schema.
--- Sends: plans that mark, in place, the empty tables which the schema means as objects.
--- Does not know about: defaults, whether the value is right.

local new_plans = require('mcp-tools.schema.plans')

local EMPTY_DICT = getmetatable(vim.empty_dict())

---@class mcp-tools.schema.Shaper: mcp-tools.schema.Visitor
local Shaper = {}

function Shaper:property(plans, name, schemas)
  local inside = plans:inside(schemas)
  return function(v)
    if type(v[name]) == 'table' then
      inside(v[name])
    end
  end
end

function Shaper:empty(v, wanted)
  if wanted then
    setmetatable(v, EMPTY_DICT)
  end
  return false
end

---@param compiler mcp-tools.schema.Compiler
---@return mcp-tools.schema.Plans
return function(compiler)
  return new_plans(compiler, Shaper)
end
