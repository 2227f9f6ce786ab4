--- Data about the editor as it may be told: names may hold any bytes, results only UTF-8.
---
--- Receives: data of tables and plain values.
--- Sends: a copy whose strings are UTF-8.
--- Does not know about: what it means.

local utf8 = require('mcp-tools.util.utf8')

---@generic T
---@param value T
---@return T copy
---@return boolean lossy something was replaced
local function clean(value)
  if type(value) == 'string' then
    return utf8.repair(value)
  elseif type(value) ~= 'table' then
    return value, false
  end
  local copy, lossy = setmetatable({}, getmetatable(value)), false
  for key, item in pairs(value) do
    local new_key, key_lossy = clean(key)
    local new_item, item_lossy = clean(item)
    copy[new_key] = new_item
    lossy = lossy or key_lossy or item_lossy
  end
  return copy, lossy
end

--- A copy in UTF-8. `lossy` is set in it where something was replaced.
---@param data table
---@return table
return function(data)
  local copy, lossy = clean(data)
  copy.lossy = lossy or copy.lossy
  return copy
end
