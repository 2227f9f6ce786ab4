--- The text of a file that does not exist yet, in a buffer that is not the file's: nothing is written by `:w`.

local first_text = require('mcp-tools.ui.review.first_text')
local highlights = require('mcp-tools.ui.window.highlights')
local marks = require('mcp-tools.ui.review.marks')

local api = vim.api

local M = {}

---@type table<mcp-tools.Proposal, integer>
local buffers = setmetatable({}, { __mode = 'k' })
---@type table<integer, integer> window → buffer that it showed before
local came_from = {}

--- Its buffer.
---@param file mcp-tools.Proposal
---@return integer bufnr
function M.buffer(file)
  local known = buffers[file]
  if known and api.nvim_buf_is_valid(known) then
    return known
  end
  local bufnr = api.nvim_create_buf(false, true)
  buffers[file] = bufnr
  api.nvim_buf_set_name(bufnr, ('mcp-tools://new/%d/%s'):format(bufnr, vim.fs.basename(file.path)))
  first_text(bufnr, file:proposed())
  vim.bo[bufnr].filetype = vim.filetype.match({ filename = file.path, buf = bufnr }) or ''
  vim.bo[bufnr].modifiable = file.editable
  api.nvim_buf_set_extmark(bufnr, marks.SPACE, 0, 0, {
    end_row = api.nvim_buf_line_count(bufnr) - 1,
    line_hl_group = highlights.group('Added'),
    right_gravity = false,
    end_right_gravity = true,
    priority = 50,
  })
  return bufnr
end

--- The text that the person has made of it, if it was shown.
---@param file mcp-tools.Proposal
---@return string[]?
function M.text(file)
  local bufnr = buffers[file]
  return bufnr and api.nvim_buf_is_valid(bufnr) and api.nvim_buf_get_lines(bufnr, 0, -1, false) or nil
end

--- Whose buffer is it?
---@param bufnr integer
---@param files mcp-tools.Proposal[]
---@return integer? file
function M.file_of(bufnr, files)
  for i, file in ipairs(files) do
    if buffers[file] == bufnr then
      return i
    end
  end
end

--- A window shows a file of a review from now on.
---@param window integer
---@param before integer? buffer that it showed; nil: it was opened for this
function M.shown_in(window, before)
  came_from[window] = before
end

--- Shows in the current window what was there before, if that is the text of a new file.
function M.leave()
  local window = api.nvim_get_current_win()
  if not vim.tbl_contains(vim.tbl_values(buffers), api.nvim_get_current_buf()) then
    return
  end
  local before = came_from[window]
  if before and api.nvim_buf_is_valid(before) then
    pcall(api.nvim_win_set_buf, window, before)
  elseif #api.nvim_list_wins() > 1 then
    pcall(api.nvim_win_close, window, false)
  end
end

--- It is not shown any more.
---@param file mcp-tools.Proposal
function M.drop(file)
  local bufnr = buffers[file]
  buffers[file] = nil
  if bufnr and api.nvim_buf_is_valid(bufnr) then
    pcall(api.nvim_buf_delete, bufnr, { force = true })
  end
end

return M
