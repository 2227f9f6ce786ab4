--- Extracts a range of lines from text that arrives in pieces, and counts all lines.

local M = {}

---@class mcp-tools.LineCutter
---@field range mcp-tools.LineRange
---@field number integer number of the current line
---@field begun boolean whether the current line has text
---@field parts string[] parts of the current line, if it is in the range
---@field part_bytes integer
---@field lines string[]
---@field bytes integer
---@field before integer? last byte of the previous piece
---@field crlf boolean whether all line breaks so far are CR LF
local Cutter = {}
Cutter.__index = Cutter

---@param range mcp-tools.LineRange
---@return mcp-tools.LineCutter
function M.new(range)
  local made = {
    range = range,
    number = 1,
    begun = false,
    parts = {},
    part_bytes = 0,
    lines = {},
    bytes = 0,
    crlf = true,
  }
  return setmetatable(made, Cutter)
end

---@return boolean
function Cutter:wants()
  local range = self.range
  return self.number >= range.first and self.number <= range.last and self.bytes <= range.max_bytes
end

---@param part string
function Cutter:keep(part)
  local room = self.range.max_bytes + 1 - self.part_bytes -- one more byte shows that it was cut
  if room > 0 and part ~= '' then
    self.parts[#self.parts + 1] = part:sub(1, room)
    self.part_bytes = self.part_bytes + math.min(#part, room)
  end
end

function Cutter:end_line()
  local line = table.concat(self.parts)
  self.lines[#self.lines + 1] = line
  self.bytes = self.bytes + #line + 1
  self.parts, self.part_bytes = {}, 0
end

--- Adds the next piece.
---@param text string not empty
function Cutter:add(text)
  local at = 1
  while true do
    local stop = text:find('\n', at, true)
    local wanted = self:wants()
    if wanted then
      self:keep(text:sub(at, stop and stop - 1))
    end
    if not stop then
      self.begun = self.begun or at <= #text
      self.before = text:byte(-1)
      return
    end
    self.crlf = self.crlf and (stop > 1 and text:byte(stop - 1) or self.before) == 13
    if wanted then
      self:end_line()
    end
    self.number, self.begun, at = self.number + 1, false, stop + 1
  end
end

--- Ends the text.
---@return string[] lines lines of the range, without CR if all line breaks are CR LF
---@return integer total
function Cutter:finish()
  local has_last = self.begun or self.number == 1
  local count = #self.lines
  if has_last and self:wants() then
    self:end_line()
  end
  for i = 1, self.crlf and count or 0 do
    self.lines[i] = self.lines[i]:gsub('\r$', '')
  end
  return self.lines, has_last and self.number or self.number - 1
end

return M
