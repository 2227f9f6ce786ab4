--- Rows with marks in a buffer, and texts for the frame of a floating window, in the groups of our windows.
---
--- Receives: a page; texts with the names of their groups.
--- Sends: a buffer with the rows of the page; chunks for `nvim_open_win`.
--- Does not know about: windows, what the texts say.

local highlights = require('mcp-tools.ui.layout.highlights')

local api = vim.api

local M = {}

--- Groups that reach the edge of the window, and the priority of what is above them.
local LINES, OVER_LINES = { Added = true, Removed = true }, 5000

local NAMESPACE = api.nvim_create_namespace('mcp-tools-page')

--- Colours a part of a row of a buffer.
---@param buffer integer
---@param namespace integer
---@param mark mcp-tools.Mark
---@param length integer bytes of the row
function M.mark(buffer, namespace, mark, length)
  local where = { end_col = mark.to, hl_group = highlights.group(mark.name) }
  if vim.startswith(mark.name, '@') then
    where.priority = OVER_LINES
  elseif LINES[mark.name] and mark.to == length then
    where.end_row, where.end_col, where.hl_eol, where.strict = mark.row + 1, 0, true, false
  end
  api.nvim_buf_set_extmark(buffer, namespace, mark.row, mark.from, where)
end

--- Writes rows into a buffer that the person cannot change.
---@param buffer integer
---@param page mcp-tools.Page
function M.write(buffer, page)
  vim.bo[buffer].modifiable = true
  api.nvim_buf_set_lines(buffer, 0, -1, false, page.rows)
  vim.bo[buffer].modifiable = false
  api.nvim_buf_clear_namespace(buffer, NAMESPACE, 0, -1)
  for _, mark in ipairs(page.marks) do
    M.mark(buffer, NAMESPACE, mark, #page.rows[mark.row + 1])
  end
end

--- A part of a frame, on the background of the text.
---@param text string
---@param name string? of its group
---@return table
function M.chunk(text, name)
  return { text, { highlights.group('Normal'), name and highlights.group(name) } }
end

--- Adds to a title how much there is to read.
---@param chunks table[]
---@param below integer rows that are not on the screen
---@return table[] chunks
function M.with_more(chunks, below)
  if below > 0 then
    table.insert(chunks, M.chunk(('… %d more line%s '):format(below, below == 1 and '' or 's'), 'Warn'))
  end
  return chunks
end

--- A footer that names keys; of these as many as there is room for, and of the first always something.
---@param list { [1]: string, [2]: string }[] keys, and what they do
---@param width integer
---@param name string? of the group of what they do
---@return table[] chunks
function M.keys(list, width, name)
  local used, chunks = 0, {}
  for _, part in ipairs(list) do
    local cells = api.nvim_strwidth(part[1] .. part[2]) + 3
    if used + cells <= width then
      used = used + cells
      table.insert(chunks, M.chunk((' %s '):format(part[1]), 'Key'))
      table.insert(chunks, M.chunk(part[2] .. ' ', name))
    end
  end
  local first = list[1]
  if #chunks == 0 and first then
    -- A frame takes no empty one.
    chunks[1] = M.chunk((' %s '):format(vim.fn.strcharpart(first[1], 0, math.max(1, width - 2))), 'Key')
  end
  return chunks
end

return M
