--- Ids that must not be used again: the last so many of them.
---
--- Receives: ids. Sends: whether one is known. Does not know about: calls.

local M = {}

--- Two generations: when the younger is full, the older is dropped as a whole. (To take single keys out of a full table
--- makes every new one cost a look at all.)
---@class mcp-tools.UsedIds
---@field size integer
---@field young table<string, true>
---@field old table<string, true>
---@field count integer of the young ones
local UsedIds = {}
UsedIds.__index = UsedIds

--- Makes an empty list.
---@param size integer at least so many are kept, at most twice as many
---@return mcp-tools.UsedIds
function M.new(size)
  return setmetatable({ size = size, young = {}, old = {}, count = 0 }, UsedIds)
end

---@param id string
---@return boolean
function UsedIds:has(id)
  return self.young[id] ~= nil or self.old[id] ~= nil
end

--- Notes an id.
---@param id string
function UsedIds:add(id)
  if self.young[id] then
    return
  elseif self.count == self.size then
    self.young, self.old, self.count = {}, self.young, 0
  end
  self.young[id], self.count = true, self.count + 1
end

return M
