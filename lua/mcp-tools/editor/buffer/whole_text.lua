--- Whole text of a buffer, made in pieces: the editor has its turns while a large one is copied.
---
--- Receives: a loaded buffer.
--- Sends: its text as it was at one moment.
--- Does not know about: what is made of it, who may read it.

local garbage = require('mcp-tools.util.garbage')

local api = vim.api

local M = {}

--- Lines that are copied in one go.
local PIECE = 2000
--- The text changes while it is copied: begun anew so many times, then it is copied in one go.
local TRIES = 3

---@param bufnr integer
---@param ending string
---@param pause fun()
---@return string? text nil: it has changed, or is gone
local function in_pieces(bufnr, ending, pause)
  local tick, count, parts = api.nvim_buf_get_changedtick(bufnr), api.nvim_buf_line_count(bufnr), {}
  for first = 0, count - 1, PIECE do
    local lines = api.nvim_buf_get_lines(bufnr, first, math.min(first + PIECE, count), false)
    lines[#lines + 1] = '' -- the last line ends, too
    parts[#parts + 1] = table.concat(lines, ending)
    if first + PIECE < count then
      pause()
      if not api.nvim_buf_is_loaded(bufnr) or api.nvim_buf_get_changedtick(bufnr) ~= tick then
        return nil
      end
    end
  end
  return garbage.without(table.concat, parts)
end

--- The text of a buffer, each line with its ending. It is that of now: nothing else runs before the return.
---@param bufnr integer loaded
---@param pause fun() called between pieces of work
---@param ending? string of lines; "\n" when left out
---@return string? text nil: the buffer is gone
function M.of(bufnr, pause, ending)
  ending = ending or '\n'
  for _ = 1, TRIES do
    if not api.nvim_buf_is_loaded(bufnr) then
      return nil
    end
    local text = in_pieces(bufnr, ending, pause)
    if text then
      return text
    end
  end
  return api.nvim_buf_is_loaded(bufnr) and in_pieces(bufnr, ending, function() end) or nil
end

return M
