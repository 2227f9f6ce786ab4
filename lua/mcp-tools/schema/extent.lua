--- How large a value is when it is written out: how deep it nests, how many parts it has.
---
--- Receives: tables from Lua. One that stands in several places is written as often, so a small graph can be a text
--- without end.
--- Sends: depth and number of parts, in time that grows with the tables that there are, not with the text.
--- Does not know about: schemas, JSON.

--- A deeper table is not measured further; Lua's own stack ends not far beyond.
local MAX_DEPTH = 1000

---@class mcp-tools.schema.Extent
---@field depth integer tables within tables; `math.huge` for a table that contains itself
---@field parts number every value, keys not counted

---@type mcp-tools.schema.Extent
local SCALAR = { depth = 0, parts = 1 }
---@type mcp-tools.schema.Extent
local ENDLESS = { depth = math.huge, parts = math.huge }

---@param v any
---@param known table<table, mcp-tools.schema.Extent>
---@param level integer
---@return mcp-tools.schema.Extent
local function measure(v, known, level)
  if type(v) ~= 'table' then
    return SCALAR
  elseif known[v] then
    return known[v]
  elseif level > MAX_DEPTH then
    return ENDLESS
  end
  known[v] = ENDLESS -- until it is measured: whoever meets it meanwhile is inside of it
  local depth, parts = 0, 1
  for _, item in pairs(v) do
    local inner = measure(item, known, level + 1)
    depth = math.max(depth, inner.depth)
    parts = parts + inner.parts
  end
  known[v] = { depth = depth + 1, parts = parts }
  return known[v]
end

---@param v any
---@return mcp-tools.schema.Extent
return function(v)
  return measure(v, {}, 1)
end
