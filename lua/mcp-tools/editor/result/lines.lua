--- Lines of a text as a tool result: as many as fit, and the number of the next one.

local errors = require('mcp-tools.errors')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

--- Maximum size of the text in bytes. Longer text is cut at a line.
M.MAX_BYTES = 256 * 1024

--- Returns as many lines as fit.
---@param lines string[]
---@return string text, integer count, boolean cut
local function fitting(lines)
  local bytes, count = 0, 0
  for _, line in ipairs(lines) do
    bytes = bytes + #line + 1
    if bytes > M.MAX_BYTES and count > 0 then
      return table.concat(lines, '\n', 1, count), count, true
    end
    count = count + 1
  end
  return table.concat(lines, '\n', 1, count), count, false
end

--- Adds the fields of a result to `about`.
---@param lines string[] the requested range
---@param about table other fields of the result; modified in place
---@param args { start_line: integer, end_line: integer? } the requested range
---@param total integer
---@return table
function M.of(lines, about, args, total)
  local text, count = fitting(lines)
  local cut_line = #text > M.MAX_BYTES
  if cut_line then
    text = text:sub(1, M.MAX_BYTES)
  end
  local whole, lossy = utf8.repair(text)
  local first = args.start_line
  local last = first + count - 1
  about.lines = total
  about.start_line = first
  about.end_line = last
  about.next_line = last < math.min(args.end_line or total, total) and last + 1 or nil
  about.truncated = (cut_line or count < #lines) and true or nil
  about.lossy = lossy or nil
  about.text = whole
  return about
end

--- Returns why a range is not valid for the text.
---@param args { start_line: integer, end_line: integer? }
---@param total integer
---@return mcp-tools.Error?
function M.range_fault(args, total)
  if args.end_line and args.end_line < args.start_line then
    return errors.new('validation_error', 'end_line: must not be before start_line')
  elseif args.start_line > math.max(total, 1) then
    local text = ('start_line: line %d is beyond the end (%d lines)'):format(args.start_line, total)
    return errors.new('validation_error', text)
  end
end

--- Returns the last requested line.
---@param args { start_line: integer, end_line: integer?, limit: integer }
---@param total number
---@return number
function M.last_line(args, total)
  return math.min(args.end_line or total, args.start_line + args.limit - 1, total)
end

return M
