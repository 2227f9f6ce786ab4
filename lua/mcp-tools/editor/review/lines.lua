--- Texts as lists of lines, and back.
---
--- Receives: a text, or lines and how they end.
--- Sends: the other. Does not know about: files, proposals.

local M = {}

--- So many at a time.
local AT_ONCE = 2000

local function go_on() end

--- A text in lines.
---@param text string
---@param pause? fun() called between pieces of work
---@return string[] lines at least one
---@return { last: boolean, crlf: boolean } ends
function M.lines_of(text, pause)
  pause = pause or go_on
  local ends = { last = text:byte(-1) == 10, crlf = false }
  local lines, count, at = {}, 0, 1
  local stop = text:find('\n', 1, true)
  while stop and stop < #text do
    count = count + 1
    lines[count] = text:sub(at, stop - 1)
    if count % AT_ONCE == 0 then
      pause()
    end
    at = stop + 1
    stop = text:find('\n', at, true)
  end
  lines[count + 1] = text:sub(at, ends.last and -2 or -1)
  count = ends.last and count + 1 or count
  for i = 1, count do
    if lines[i]:byte(-1) ~= 13 then
      return lines, ends
    end
  end
  ends.crlf = count > 0
  for i = 1, count do
    lines[i] = lines[i]:sub(1, -2)
    if i % AT_ONCE == 0 then
      pause()
    end
  end
  return lines, ends
end

--- Lines as one text.
---@param lines string[]
---@param ends { last: boolean, crlf: boolean }
---@return string
function M.text_of(lines, ends)
  local line_break = ends.crlf and '\r\n' or '\n'
  return table.concat(lines, line_break) .. (ends.last and line_break or '')
end

--- How the lines of a buffer are written.
---@param bufnr integer
---@return { last: boolean, crlf: boolean }
function M.ends_of(bufnr)
  local options = vim.bo[bufnr]
  return { last = options.endofline or options.fixendofline, crlf = options.fileformat == 'dos' }
end

return M
