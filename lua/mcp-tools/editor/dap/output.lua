--- Output of a program under the debugger, the last of it.

local M = {}

--- Lines that are kept; and no line is longer in memory.
M.MAX_LINES = 1000
local MAX_LINE = 4000
--- A piece goes on with the last line of its category, if that is among so many.
local NEAR = 4

---@class mcp-tools.dap.Line
---@field seq integer from 1
---@field category string
---@field text string
---@field is_open boolean its end has not come yet

---@class mcp-tools.dap.Output
---@field private lines table<integer, mcp-tools.dap.Line> by their seq
---@field count integer lines that have come
---@field told integer the last one that an answer had
local Output = {}
Output.__index = Output

---@return mcp-tools.dap.Output
function M.new()
  return setmetatable({ lines = {}, count = 0, told = 0 }, Output)
end

--- The line that a category goes on with; what an answer had is over.
---@param category string
---@return mcp-tools.dap.Line?
function Output:open(category)
  for seq = self.count, math.max(self.told, self.count - NEAR, 0) + 1, -1 do
    local line = self.lines[seq]
    if line and line.category == category then
      return line.is_open and line or nil
    end
  end
end

---@param category string
---@param text string
function Output:add(category, text)
  local pieces = vim.split(text, '\r?\n')
  for i, piece in ipairs(pieces) do
    local ends = i < #pieces
    local line = i == 1 and self:open(category)
    if line then
      line.text = (line.text .. piece):sub(1, MAX_LINE)
      line.is_open = not ends
    elseif piece ~= '' or ends then
      self.count = self.count + 1
      self.lines[self.count] =
        { seq = self.count, category = category, text = piece:sub(1, MAX_LINE), is_open = not ends }
      self.lines[self.count - M.MAX_LINES] = nil
    end
  end
end

--- Lines of a category behind a line.
---@param category string 'all' or one
---@param since integer
---@return mcp-tools.dap.Line[]
function Output:after(category, since)
  local found = {}
  for seq = math.max(since, self.count - M.MAX_LINES) + 1, self.count do
    local line = self.lines[seq]
    if category == 'all' or line.category == category then
      table.insert(found, line)
    end
  end
  return found
end

return M
