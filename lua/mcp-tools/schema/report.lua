--- Collects what is wrong with a value, with the place of each fault.
---
--- Receives: faults from the compiled checks, in a second pass that only a value with faults pays for.
--- Sends: a list of `{field, message}` without duplicates, of bounded length.
--- Does not know about: schemas, keywords.

local join = require('mcp-tools.schema.keywords').join

--- More faults than this are counted, not listed.
local MAX_ERRORS = 100

---@class mcp-tools.schema.Report
---@field keys (string|integer)[] the way from the root to the value being checked
---@field depth integer
---@field errors mcp-tools.Fault[]
---@field seen table<string, true>
---@field left_out integer
local Report = {}
Report.__index = Report

---@return mcp-tools.schema.Report
function Report.new()
  return setmetatable({ keys = {}, depth = 0, errors = {}, seen = {}, left_out = 0 }, Report)
end

--- Goes into a property or item.
---@param key string|integer Lua index for items
function Report:enter(key)
  self.depth = self.depth + 1
  self.keys[self.depth] = key
end

function Report:leave()
  self.keys[self.depth] = nil
  self.depth = self.depth - 1
end

--- Notes a fault of the current value, or of one of its properties.
---@param message string
---@param key? string
function Report:add(message, key)
  local path = ''
  for i = 1, self.depth do
    path = join(path, self.keys[i])
  end
  path = key and join(path, key) or path
  self:put(path == '' and '(root)' or path, message)
end

--- Notes a fault with its whole path.
---@param field string
---@param message string
function Report:put(field, message)
  local id = field .. '\0' .. message
  if self.seen[id] then
    return
  end
  self.seen[id] = true
  if #self.errors < MAX_ERRORS then
    self.errors[#self.errors + 1] = { field = field, message = message }
  else
    self.left_out = self.left_out + 1
  end
end

--- An empty report about the same place, for faults that may be thrown away.
---@return mcp-tools.schema.Report
function Report:branch()
  local branch = Report.new()
  for i = 1, self.depth do
    branch.keys[i] = self.keys[i]
  end
  branch.depth = self.depth
  return branch
end

--- Takes over the faults of a branch.
---@param branch mcp-tools.schema.Report
function Report:merge(branch)
  for _, fault in ipairs(branch.errors) do
    self:put(fault.field, fault.message)
  end
  self.left_out = self.left_out + branch.left_out
end

--- All faults, in the order they were found.
---@return mcp-tools.Fault[]
function Report:list()
  if self.left_out > 0 then
    self.errors[#self.errors + 1] = { field = '(root)', message = ('%d more faults'):format(self.left_out) }
  end
  return self.errors
end

return Report
