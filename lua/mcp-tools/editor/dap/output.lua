--- The latest output of a debugged program.

local M = {}

--- Maximum number of lines that are kept, and length of a line.
M.MAX_LINES = 1000
local MAX_LINE = 4000
--- Number of last lines in which an open line is searched for, to which new output is added.
local NEAR = 4

---@class mcp-tools.dap.Line
---@field seq integer from 1
---@field category string
---@field text string
---@field is_open boolean it has no line break yet

---@class mcp-tools.dap.Output
---@field private lines table<integer, mcp-tools.dap.Line> by their seq
---@field count integer number of all lines so far
---@field reported integer last line that was part of an answer
local Output = {}
Output.__index = Output

---@return mcp-tools.dap.Output
function M.new()
  return setmetatable({ lines = {}, count = 0, reported = 0 }, Output)
end

--- Returns the line that new output of a category continues, unless it was reported already.
---@param category string
---@return mcp-tools.dap.Line?
function Output:open(category)
  for seq = self.count, math.max(self.reported, self.count - NEAR, 0) + 1, -1 do
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

--- Returns the lines after a line.
---@param since integer
---@return mcp-tools.dap.Line[]
function Output:after(since)
  local found = {}
  for seq = math.max(since, self.count - M.MAX_LINES) + 1, self.count do
    table.insert(found, self.lines[seq])
  end
  return found
end

return M
