--- A bounded cache that drops the least recently used values.
---
---   local cache = lru(64)          -- keeps at least the 64 most recently used values
---   cache:set(key, value)
---   cache:get(key)

---@class mcp-tools.Lru
---@field private max integer
---@field private new table<any, any> most recently used values
---@field private old table<any, any> values used before; dropped when `new` is full
---@field private count integer size of `new`
local Lru = {}
Lru.__index = Lru

---@param key any
---@param value any nil removes it
function Lru:set(key, value)
  if self.new[key] == nil and value ~= nil then
    if self.count >= self.max then
      self.new, self.old, self.count = {}, self.new, 0
    end
    self.count = self.count + 1
  elseif self.new[key] ~= nil and value == nil then
    self.count = self.count - 1
  end
  self.new[key], self.old[key] = value, nil
end

---@param key any
---@return any value
function Lru:get(key)
  local value = self.new[key]
  if value == nil and self.old[key] ~= nil then
    value = self.old[key]
    self:set(key, value)
  end
  return value
end

--- Creates an empty cache.
---@param max integer
---@return mcp-tools.Lru
return function(max)
  return setmetatable({ max = max, new = {}, old = {}, count = 0 }, Lru)
end
