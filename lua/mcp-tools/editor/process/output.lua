--- Keeps the first or the last bytes of a stream in bounded memory.

local garbage = require('mcp-tools.util.garbage')

local M = {}

---@class mcp-tools.process.Output
---@field cut boolean whether bytes were dropped
---@field private limit integer bytes
---@field private tail boolean whether the last bytes are kept
local Output = {}
Output.__index = Output

---@param limit integer bytes
---@param keep 'head'|'tail'|nil default: 'head'
---@return mcp-tools.process.Output
function M.new(limit, keep)
  local self = setmetatable({ limit = limit, tail = keep == 'tail' }, Output)
  self:clear()
  return self
end

function Output:clear()
  self.chunks, self.first, self.last, self.size, self.cut = {}, 1, 0, 0, false
end

---@param data string
function Output:add(data)
  local room = self.limit - self.size
  self.cut = self.cut or #data > room
  if not self.tail then
    data = data:sub(1, room)
  end
  if data == '' then
    return
  end
  self.last = self.last + 1
  self.chunks[self.last] = data
  self.size = self.size + #data
  while self.tail and self.size - #self.chunks[self.first] >= self.limit do
    self.size = self.size - #self.chunks[self.first]
    self.chunks[self.first] = nil
    self.first = self.first + 1
  end
end

---@return string
function Output:text()
  local text = garbage.without(table.concat, self.chunks, '', self.first, self.last)
  return #text > self.limit and text:sub(-self.limit) or text
end

--- Returns and clears the text.
---@return string
function Output:take()
  local text = self:text()
  self:clear()
  return text
end

return M
